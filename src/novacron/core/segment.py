"""Which part of a physical network an interface is to be on."""

from dataclasses import dataclass

from novacron.core.declaration import Declaration

__all__ = ["Segment"]


@dataclass(frozen=True, slots=True)
class Segment:
    """A bridge that hosts have, and the VLAN on it; no VLAN means all that is untagged."""

    bridge: str
    vlan: int | None = None
    declared_by: Declaration | None = None
