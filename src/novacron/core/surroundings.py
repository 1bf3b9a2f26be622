"""What is beside an object, for those that need it to be understood."""

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

__all__ = ["Reference", "Surroundings"]


class Reference(NamedTuple):
    """An object that another one refers to; without a name, any of that kind."""

    plural: str
    namespace: str
    name: str


class Surroundings(Protocol):
    """Finds what objects refer to."""

    def get(self, reference: Reference) -> dict[str, Any] | None:
        """Return what is referred to; None where there is no such thing."""

    def every(self, plural: str) -> Iterable[dict[str, Any]]:
        """Return all objects of a kind."""
