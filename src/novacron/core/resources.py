"""An amount of what hosts have and machines take."""

from dataclasses import dataclass

__all__ = ["Resources"]


@dataclass(frozen=True, slots=True)
class Resources:
    """An amount of what hosts have and machines take."""

    vcpus: int = 0
    memory_mib: int = 0
    disk_mib: int = 0

    def __add__(self, other: "Resources") -> "Resources":
        return Resources(
            self.vcpus + other.vcpus,
            self.memory_mib + other.memory_mib,
            self.disk_mib + other.disk_mib,
        )

    def __sub__(self, other: "Resources") -> "Resources":
        return Resources(
            self.vcpus - other.vcpus,
            self.memory_mib - other.memory_mib,
            self.disk_mib - other.disk_mib,
        )

    def covering(self, other: "Resources") -> "Resources":
        """Return the least amount that is enough for either."""
        return Resources(
            max(self.vcpus, other.vcpus),
            max(self.memory_mib, other.memory_mib),
            max(self.disk_mib, other.disk_mib),
        )

    def fits(self, room: "Resources") -> bool:
        """Say whether this amount can be taken from the room."""
        return (
            self.vcpus <= room.vcpus
            and self.memory_mib <= room.memory_mib
            and self.disk_mib <= room.disk_mib
        )
