"""A root that may not do what root does is told so, before anything is tried."""

import os
import shutil
import subprocess
import sys

import pytest

START = """
import pathlib, sys
from novacron.localcluster.errors import LocalClusterError
from novacron.localcluster.hypervisor import Hypervisor
try:
    Hypervisor(pathlib.Path(sys.argv[1])).start()
except LocalClusterError as error:
    sys.exit(str(error))
"""


@pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("setpriv"), reason="only root can give rights up"
)
@pytest.mark.parametrize("right", ["sys_admin", "net_admin"])
def test_a_container_without_rights_is_one_sentence(tmp_path, right):
    """That is how container engines start root by default."""
    limited = ["setpriv", f"--bounding-set=-{right}"]
    done = subprocess.run(
        [*limited, sys.executable, "-c", START, str(tmp_path / "host")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert f"this root has no CAP_{right.upper()}, which guests on a bridge need" in done.stderr
    assert "run as an ordinary user" in done.stderr
    assert not (tmp_path / "host").exists()
