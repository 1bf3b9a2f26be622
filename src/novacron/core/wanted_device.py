"""A piece of hardware that a machine asks for, whichever host has it."""

from dataclasses import dataclass

from novacron.core.devices import HostDevice

__all__ = ["WantedDevice"]


@dataclass(frozen=True, slots=True)
class WantedDevice:
    """So many devices of a kind; no vendor or no model means any."""

    kind: str
    vendor: str | None = None
    model: str | None = None
    count: int = 1

    def is_met_by(self, device: HostDevice) -> bool:
        """Say whether a device is such a one; how people capitalise names does not matter."""
        return (
            _same(self.kind, device.kind)
            and (self.vendor is None or _same(self.vendor, device.vendor))
            and (self.model is None or _same(self.model, device.model))
        )

    def __str__(self) -> str:
        named = (name for name in (self.kind, self.vendor, self.model) if name)
        return f"{self.count} {' '.join(named)}"


def _same(one: str, other: str) -> bool:
    return one.casefold() == other.casefold()
