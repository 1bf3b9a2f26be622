"""The built-in images, made once for all tests."""

import tarfile
from functools import cache
from pathlib import Path

from novacron.core.errors import Rejected
from novacron.core.machine import MachinePlan
from novacron.guests.builtin import builtin
from novacron.images import FileBytes, Located, Reach, WebBytes
from novacron.workplace.home import Home
from novacron.workplace.progress import Silent


@cache
def built_in(name: str) -> Path | None:
    """Return the file of a built-in image."""
    return builtin(name, Home.default().cache, Silent())


async def located(plan: MachinePlan) -> Located:
    """Find built-in images and those that a test serves, as the operator does."""
    if plan.image.startswith("http:"):
        place = WebBytes(plan.image, Reach(allow=("127.0.0.0/8",)))
        return Located(plan.image, place, plan.checksum)
    name = plan.image.removeprefix("builtin://")
    path = built_in(name)
    if path is None:
        raise Rejected(f"no built-in image is called {name}", reason="ImageNotFound")
    return Located(plan.image, FileBytes(path, plan.image))


def as_ova(directory: Path, *members: Path) -> Path:
    """Pack disks as VMware and VirtualBox export them."""
    (directory / "machine.ovf").write_text("<Envelope/>")
    made = directory / "machine.ova"
    with tarfile.open(made, "w", format=tarfile.USTAR_FORMAT) as archive:
        for member in (directory / "machine.ovf", *members):
            archive.add(member, member.name)
    return made


def directory_with_tiny(directory: Path) -> Path:
    """Make a directory as the operator expects one, with the tiny guest in it."""
    image = built_in("tiny")
    assert image is not None
    directory.mkdir(exist_ok=True)
    (directory / "tiny.qcow2").symlink_to(image)
    return directory
