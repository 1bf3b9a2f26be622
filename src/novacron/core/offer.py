"""What a host has that others may not, and machines may need, from abilities to networks."""

from enum import StrEnum
from typing import NamedTuple

__all__ = ["Offer", "OfferKind"]


class OfferKind(StrEnum):
    """What sort of thing is offered; the scheduler has one filter for each."""

    CAPABILITY = "Capability"
    STORAGE = "Storage"
    NETWORK = "Network"
    DRIVER = "Driver"


class Offer(NamedTuple):
    """One thing by its name. "*" stands for any."""

    kind: OfferKind
    name: str

    @property
    def any(self) -> "Offer":
        """What a host offers that cannot tell what it has of this sort."""
        return Offer(self.kind, "*")

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"
