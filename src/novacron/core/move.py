"""A machine on its way from one host to another: what was asked for and decided, how it went."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from novacron.core.devices import HostDevice

__all__ = [
    "Move",
    "MoveMode",
    "MovePolicy",
    "MoveProgress",
    "MoveReport",
    "MoveRequest",
    "MoveResult",
]


@dataclass(frozen=True, slots=True)
class MovePolicy:
    """How a machine's memory and disks may travel; no bandwidth is as much as there is."""

    compression: bool = True
    encrypted: bool = False
    bandwidth_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class MoveRequest:
    """Somebody wants the machine elsewhere: on one host, or on whichever is best."""

    to: str | None = None
    stop_allowed: bool = False


class MoveMode(StrEnum):
    """How a machine gets from one host to another."""

    LIVE = "Live"
    STOPPED = "Stopped"
    ANEW = "Anew"


@dataclass(frozen=True, slots=True)
class Move:
    """The placer's word that a machine goes to another host, written before anything is done.

    Not ``live``: it is stopped for that. ``lost``: its host is known to be switched off, so that
    nothing is asked of it and the machine begins anew from the disks that both can reach.
    ``devices`` are those of the target that are set aside for it.
    """

    id: str
    source: str
    target: str
    live: bool = True
    lost: bool = False
    why: str = ""
    devices: tuple[HostDevice, ...] = ()

    @property
    def mode(self) -> MoveMode:
        """How the machine gets there."""
        if self.lost:
            return MoveMode.ANEW
        return MoveMode.LIVE if self.live else MoveMode.STOPPED


class MoveResult(StrEnum):
    """How a move ended."""

    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CANCELLED = "Cancelled"
    REFUSED = "Refused"


@dataclass(frozen=True, slots=True)
class MoveProgress:
    """How far a move is, as the hypervisor tells; what it cannot tell is None."""

    percent: int = 0
    transferred_bytes: int | None = None
    downtime_ms: int | None = None


@dataclass(frozen=True, slots=True)
class MoveReport:
    """What is known of the move under way, or of the last one; without ``result`` it goes on.

    ``mode`` is for moves between hosts that somebody placed; ``devices`` are its target's that are
    set aside as long as it goes on.
    """

    id: str = ""
    source: str | None = None
    target: str | None = None
    started: datetime | None = None
    ended: datetime | None = None
    progress: MoveProgress = MoveProgress()
    result: MoveResult | None = None
    reason: str = ""
    message: str = ""
    mode: MoveMode | None = None
    devices: tuple[HostDevice, ...] = ()
