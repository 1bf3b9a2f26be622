"""An image that was found: what a driver needs to bring it to its host."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from novacron.core.errors import Rejected
from novacron.core.machine import MachinePlan, Resources
from novacron.images.bytes import Bytes, FileBytes

__all__ = ["HostFile", "Locate", "Located", "require_minimum"]

NOTHING = Resources()


@dataclass(frozen=True, slots=True)
class HostFile:
    """A file that the host has or can mount; only the host's own driver can read it.

    ``server`` is an NFS server; without one the directory is the host's own.
    """

    directory: str
    name: str
    shown: str
    server: str | None = None


@dataclass(frozen=True, slots=True)
class Located:
    """Where an image is and what is known of it beforehand.

    ``vouched`` says that the checksum is an administrator's: what has it is what is there. Whoever
    asks for an image may name any checksum. ``checksums`` is an administrator's file in which it is
    found when it is needed; ``minimum`` is the least machine that it runs on.
    """

    source: str
    place: Bytes | HostFile
    checksum: str | None = None
    checksums: Bytes | None = None
    minimum: Resources = NOTHING
    vouched: bool = False

    @property
    def identity(self) -> str:
        """What is the same for the same place, however it was asked for."""
        match self.place:
            case HostFile(directory, name, _, server):
                return f"{server or ''}:{directory}/{name}"
            case place:
                return place.identity

    @property
    def comes_with_us(self) -> bool:
        """Say whether it is a file of this machine, which is as new as this program."""
        return isinstance(self.place, FileBytes)


# Finds the image that a plan asks for; raises only errors of the core.
Locate = Callable[[MachinePlan], Awaitable[Located]]


def require_minimum(located: Located, size: Resources) -> None:
    """Refuse a machine that is too small for its image."""
    least = located.minimum
    for what, wanted, least_amount, unit in (
        ("cpu", size.vcpus, least.vcpus, ""),
        ("memory", size.memory_mib, least.memory_mib, "Mi"),
        ("disk", size.disk_mib, least.disk_mib, "Mi"),
    ):
        if wanted < least_amount:
            raise Rejected(
                f"image {located.source} needs {what} of at least {least_amount}{unit}, "
                f"not {wanted}{unit}",
                reason="TooSmallForImage",
            )
