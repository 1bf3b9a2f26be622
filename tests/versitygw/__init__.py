"""versitygw, an S3 server over a directory that checks signatures: built like Kubernetes is.

Needed by a few tests marked ``full``, which skip nothing: ``make test-full`` builds it first.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from novacron.localcluster.build import provide
from novacron.localcluster.recipe import Recipe
from novacron.workplace.home import Home
from novacron.workplace.progress import Progress, Silent

__all__ = ["ACCESS", "SECRET", "VERSITYGW", "built", "serving"]

VERSITYGW = Recipe(
    "versitygw",
    "1.8.0",
    Path(__file__).parent / "gomod",
    ("github.com/versity/versitygw/cmd/versitygw",),
)
ACCESS, SECRET = "tester", "a secret of the tests"
SILENT = Silent()


def built(progress: Progress = SILENT) -> Path:
    """Return the program, built if need be."""
    return provide(VERSITYGW, Home.default().cache, progress) / "versitygw"


@contextmanager
def serving(directory: Path, port: int) -> Iterator[str]:
    """Serve the directories in one as buckets; return the endpoint."""
    environment = {**os.environ, "ROOT_ACCESS_KEY_ID": ACCESS, "ROOT_SECRET_ACCESS_KEY": SECRET}
    command = [built(), "--port", f"127.0.0.1:{port}", "posix", directory]
    with (directory.parent / "versitygw.log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)
