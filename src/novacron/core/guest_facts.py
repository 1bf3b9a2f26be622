"""What a hypervisor can tell of a guest beside its size; whatever it cannot tell is empty."""

from dataclasses import dataclass, field
from datetime import datetime

__all__ = ["GuestFacts", "SeenNic"]


@dataclass(frozen=True, slots=True)
class SeenNic:
    """A network interface as the hypervisor sees it; ``link`` is ``up`` or ``down``."""

    name: str
    addresses: tuple[str, ...] = ()
    link: str = ""


@dataclass(frozen=True, slots=True)
class GuestFacts:
    """``state`` is the hypervisor's own word for how it is; ``started`` is for one that runs.

    The word alone is no change: what it says is in what else was seen.
    """

    state: str = field(default="", compare=False)
    hostname: str = ""
    architecture: str = ""
    system: str = ""
    system_version: str = ""
    kernel: str = ""
    created: datetime | None = None
    started: datetime | None = None
    nics: tuple[SeenNic, ...] = ()
