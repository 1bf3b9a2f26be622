"""Our own image, which is not an image here: the Python environment that this process runs in."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import novacron
from novacron.localcluster.node.order import Root
from novacron.localcluster.node.root import PROGRAM_DIRECTORIES

__all__ = ["ENTRY_POINT", "IMAGE_USER", "OwnImage", "repository_of"]

ENTRY_POINT = ("/manager",)
# What the image's own user is: nobody in particular, and not root.
IMAGE_USER = 65532
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class OwnImage:
    """The image whose pods can run here, known by its repository whatever the registry or tag."""

    repository: str

    def is_meant_by(self, reference: str) -> bool:
        """Say whether an image reference names our image."""
        return repository_of(reference) == self.repository

    @property
    def identity(self) -> str:
        """Return what the status calls the image that runs."""
        return f"novacron-local://{self.repository}@{novacron.__version__}"

    def environment(self) -> dict[str, str]:
        """Return the variables that every container of the image begins with."""
        return {"PATH": f"{_scripts()}:{SYSTEM_PATH}", "HOME": "/home/nonroot"}

    def root(self, files: dict[str, str], *, read_only: bool) -> Root:
        """Return the root file system of a container, with these files in it."""
        return Root(
            programs=[str(path) for path in _programs()],
            links={"manager": str(_scripts() / "manager")},
            files=files,
            owned=("home/nonroot", "var/lib/novacron"),
            read_only=read_only,
        )


def repository_of(reference: str) -> str:
    """Return the repository of an image reference, without registry, tag and digest."""
    name = reference.partition("@")[0]
    first, slash, rest = name.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        name = rest
    return name.partition(":")[0]


def _scripts() -> Path:
    return Path(sys.executable).parent


def _programs() -> list[Path]:
    """Return every place of the machine that our environment is made of."""
    package = Path(novacron.__file__).parent.parent
    wanted = {Path(sys.prefix), Path(sys.base_prefix), package, *_interpreters()}
    wanted |= {path.resolve() for path in wanted}
    return sorted(path for path in wanted if not _seen_anyway(path, wanted))


def _interpreters() -> set[Path]:
    """Return the environments through which the links to the interpreter lead."""
    found, link = set(), Path(sys.executable)
    while link.is_symlink():
        link = Path(os.path.normpath(link.parent / link.readlink()))
        found.add(link.parent.parent)
    return found


def _seen_anyway(path: Path, wanted: set[Path]) -> bool:
    if len(path.parts) < 2 or path.parts[1] in PROGRAM_DIRECTORIES:
        return True
    return any(parent in wanted for parent in path.parents)
