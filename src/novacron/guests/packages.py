"""The system packages that making and starting guests needs."""

from novacron.workplace.packages import Package, lacking

__all__ = ["missing_for_boot", "missing_for_image"]

_program = Package.with_program
FOR_IMAGE = (
    _program("mke2fs", "e2fsprogs", "the root file system of guests is made with it"),
    _program("qemu-img", "qemu-utils", "images of disks are made with it"),
)
FOR_BOOT = (_program("qemu-system-x86_64", "qemu-system-x86", "guests run in it"),)


def missing_for_image() -> list[Package]:
    """Return the packages without which no guest image can be made here."""
    return lacking(FOR_IMAGE)


def missing_for_boot() -> list[Package]:
    """Return the packages without which no guest can be started here by hand."""
    return lacking(FOR_BOOT)
