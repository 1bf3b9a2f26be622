"""The port through which a machine moves between nodes that are its hypervisor's own affair.

Whoever places machines on hosts knows nothing of these nodes: the hypervisor is one host to it.
"""

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from novacron.core.move import Move, MoveReport

if TYPE_CHECKING:
    # A machine knows its moves, so it cannot be needed to say what those are.
    from novacron.core.machine import MachineRef

__all__ = ["Relocation"]


@runtime_checkable
class Relocation(Protocol):
    """A driver that moves running machines between nodes of its own.

    An order is known by its id: the same one twice moves once.
    """

    async def relocate(self, ref: "MachineRef", order: Move) -> None:
        """Begin to move the machine, to the order's target where it names one."""

    async def relocation(self, ref: "MachineRef", order: Move) -> MoveReport | None:
        """Tell how far an order is, or how it ended; None where it was never begun."""

    async def cancel_relocation(self, ref: "MachineRef", order: Move) -> None:
        """Have the machine stay; to be repeated until the order has ended."""
