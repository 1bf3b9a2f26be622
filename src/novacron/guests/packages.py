"""The system packages that making and starting guests needs."""

import shutil

from novacron.workplace.packages import Package

__all__ = ["missing_for_boot", "missing_for_image"]

# Where Debian keeps what only root's PATH leads to.
PLACES = "/usr/local/sbin:/usr/sbin:/sbin"


def _program(name: str, package: str, purpose: str) -> Package:
    def present() -> bool:
        return bool(shutil.which(name) or shutil.which(name, path=PLACES))

    return Package(package, purpose, present)


FOR_IMAGE = (
    _program("mke2fs", "e2fsprogs", "the root file system of guests is made with it"),
    _program("qemu-img", "qemu-utils", "images of disks are made with it"),
)
FOR_BOOT = (_program("qemu-system-x86_64", "qemu-system-x86", "guests run in it"),)


def missing_for_image() -> list[Package]:
    """Return the packages without which no guest image can be made here."""
    return [package for package in FOR_IMAGE if not package.present()]


def missing_for_boot() -> list[Package]:
    """Return the packages without which no guest can be started here by hand."""
    return [package for package in FOR_BOOT if not package.present()]
