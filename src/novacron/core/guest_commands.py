"""The port through which programs run inside guests.

A program is run once for each start of a guest, also when we die in between: whoever runs it keeps
the record at the guest.
"""

from typing import Protocol, runtime_checkable

from novacron.core.hooks import GuestProgram, Ran
from novacron.core.machine import MachineRef

__all__ = ["AGENT_SILENT", "GuestCommands"]

AGENT_SILENT = "AgentSilent"


@runtime_checkable
class GuestCommands(Protocol):
    """A driver that runs programs inside guests and remembers, for each start, what was done."""

    async def run_once(self, ref: MachineRef, name: str, program: GuestProgram) -> Ran | None:
        """Have a program run in a running guest, once for each start, however often it is asked.

        None means that it runs. Busy with reason AgentSilent means that the guest cannot be asked
        now. Another program than the one that ended under this name is run as well.
        """

    async def note_ran(self, ref: MachineRef, ran: Ran) -> None:
        """Remember until the guest stops that something was done for it."""

    async def forget_ran(self, ref: MachineRef, name: str) -> None:
        """Forget what was done under a name or is under way, so that it can be done again."""
