"""The built-in images, made once for all tests."""

from functools import cache
from pathlib import Path

from novacron.core.errors import Rejected
from novacron.core.machine import MachinePlan
from novacron.guests.builtin import builtin
from novacron.images import FileBytes, Located
from novacron.workplace.home import Home
from novacron.workplace.progress import Silent


@cache
def built_in(name: str) -> Path | None:
    """Return the file of a built-in image."""
    return builtin(name, Home.default().cache, Silent())


async def located(plan: MachinePlan) -> Located:
    """Find built-in images, as the operator does."""
    name = plan.image.removeprefix("builtin://")
    path = built_in(name)
    if path is None:
        raise Rejected(f"no built-in image is called {name}", reason="ImageNotFound")
    return Located(plan.image, FileBytes(path, plan.image))


def directory_with_tiny(directory: Path) -> Path:
    """Make a directory as the operator expects one, with the tiny guest in it."""
    image = built_in("tiny")
    assert image is not None
    directory.mkdir(exist_ok=True)
    (directory / "tiny.qcow2").symlink_to(image)
    return directory
