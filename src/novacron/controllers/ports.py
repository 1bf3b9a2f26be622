"""What controllers need to know of a family: how its objects say "machine" and "host"."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from novacron.core.affinity import Neighbour
from novacron.core.errors import Rejected
from novacron.core.host import DeclaredHost, HostReport
from novacron.core.machine import Holding, Machine
from novacron.core.move import Move
from novacron.core.placement import Placement
from novacron.core.report import MachineReport
from novacron.core.surroundings import Reference, Surroundings
from novacron.core.volume import Hold

__all__ = [
    "AddressedKind",
    "HostKind",
    "MachineKind",
    "PlacedKind",
    "ReferredKind",
    "ReferringKind",
    "RelocatedKind",
]


class MachineKind(Protocol):
    """One API family's word for a machine."""

    @property
    def finalizer(self) -> str:
        """What keeps an object until its machine is gone."""

    def machine(self, obj: dict[str, Any]) -> Machine:
        """Return the machine an object declares; raise Rejected when it cannot be one."""

    def holding(self, obj: dict[str, Any]) -> Holding | None:
        """Return what is reserved for it, without parsing more of the object than that.

        Where machines are not placed by us, it says at once where they are made.
        """

    def status(
        self, obj: dict[str, Any], machine: Machine, report: MachineReport
    ) -> dict[str, Any]:
        """Return the object's whole status after a round."""

    def refusal(self, obj: dict[str, Any], why: Rejected, now: datetime) -> dict[str, Any]:
        """Return the whole status of an object that cannot be a machine, or not yet."""


@runtime_checkable
class PlacedKind(MachineKind, Protocol):
    """A kind whose machines are placed on hosts, and moved between them, by us."""

    def booking(self, obj: dict[str, Any]) -> Holding | None:
        """Return what is reserved for it where it moves to."""

    def asks_to_move(self, obj: dict[str, Any]) -> bool:
        """Say whether it has a request to move, or wants to be placed differently than it was."""

    def neighbour(self, obj: dict[str, Any]) -> Neighbour:
        """Return what its machine is to those beside it; raise Rejected when nobody can tell."""

    def volumes_held(self, obj: dict[str, Any]) -> Mapping[str, Hold]:
        """Return all volumes that its machine has, had or asks for, by their ids."""

    def is_settled(self, obj: dict[str, Any]) -> bool:
        """Say whether its status was written for the spec it has now."""

    def placed(self, obj: dict[str, Any], placement: Placement) -> dict[str, Any]:
        """Return the object with our finalizer and the record of where its machine will be."""

    def moving(
        self, obj: dict[str, Any], placement: Placement, move: Move | None
    ) -> dict[str, Any]:
        """Return the object with the record of a move in place of all requests; None is none."""

    def moved(self, obj: dict[str, Any], placement: Placement) -> dict[str, Any]:
        """Return the object without the record of a move that is over.

        Where its owner wanted it before that was met; what he wants since is still to be looked at.
        """

    def recorded(self, obj: dict[str, Any]) -> dict[str, Any]:
        """Return the object with the record of its move under way, also where that was lost.

        The same object where nothing was. Its requests stay.
        """

    def unplaced(self, obj: dict[str, Any]) -> dict[str, Any]:
        """Return the object without finalizer and record, for a machine that was never made."""


@runtime_checkable
class AddressedKind(MachineKind, Protocol):
    """A kind whose objects say themselves where their machines are made."""

    def is_claimed(self, obj: dict[str, Any]) -> bool:
        """Say whether all is on record that is to be before its machine is made or changed."""

    def claimed(self, obj: dict[str, Any], identity: str) -> dict[str, Any]:
        """Return the object with our finalizer and the record of where its machine is made."""


@runtime_checkable
class RelocatedKind(MachineKind, Protocol):
    """A kind whose machines move between nodes that are their hypervisor's own affair."""

    def relocating(self, obj: dict[str, Any], order: Move | None) -> dict[str, Any]:
        """Return the object with the record of an order in place of all requests; None is none."""


@runtime_checkable
class ReferringKind(Protocol):
    """A kind whose objects mean something only together with others they refer to."""

    def references(self, obj: dict[str, Any]) -> Iterable[Reference]:
        """Return what an object refers to: when that changes, the object is looked at again."""

    def amid(self, surroundings: Surroundings) -> MachineKind:
        """Return the kind with a way to find what its objects refer to."""


class ReferredKind(Protocol):
    """A kind of objects that machines refer to, which say in their status who does."""

    def status(self, obj: dict[str, Any], users: Sequence[str], now: datetime) -> dict[str, Any]:
        """Return the object's whole status; ``users`` are the names of those that refer to it."""


class HostKind(Protocol):
    """The family's word for a host."""

    finalizer: str

    def host(self, obj: dict[str, Any]) -> DeclaredHost:
        """Return the host an object declares."""

    def status(self, obj: dict[str, Any], report: HostReport) -> dict[str, Any]:
        """Return the object's whole status after a round."""
