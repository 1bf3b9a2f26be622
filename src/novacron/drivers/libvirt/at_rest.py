"""Guests whose file systems are at rest for a moment, by their agents. Blocks.

An agent may take longer to freeze them than libvirt waits for it, and does so all the same: in the
end, when nobody listens any more. So nobody is done with a guest before it was thawed again.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import libvirt

from novacron.core.errors import Busy
from novacron.core.guest_commands import AGENT_SILENT
from novacron.drivers.libvirt.agent import SILENT, Agent
from novacron.drivers.libvirt.errors import code_of
from novacron.drivers.libvirt.look import Domain, read

__all__ = ["MaybeFrozen", "at_rest", "thaw"]

# A look at the guest waits for the agent meanwhile.
AGENT_SECONDS = 5
# As long as a slow disk may take for what the guest had yet to write.
THAW_SECONDS = 60.0
AGAIN_SECONDS = 1.0


class MaybeFrozen(Busy):
    """Nobody can tell whether a guest's file systems go on."""

    def __init__(self) -> None:
        super().__init__(
            "the guest's file systems may be frozen for a snapshot, and its agent does not answer; "
            "if that lasts, restart the guest",
            reason=AGENT_SILENT,
        )


@contextmanager
def at_rest(domain: Domain, lingers: Callable[[], object] = lambda: None) -> Iterator[bool]:
    """Have the guest's file systems at rest, where its agent can; say whether they are.

    An agent that does not answer is not told: nobody would know when it does it. ``lingers`` is
    called when all that is left to do is to wait until it answers again.
    """
    if domain.running is None or not domain.running.agent or not Agent(domain.handle).answers():
        yield False
        return
    frozen = False
    with suppress(libvirt.libvirtError):
        domain.handle.agentSetResponseTimeout(AGENT_SECONDS)
        domain.handle.fsFreeze()
        frozen = True
    try:
        yield frozen
    finally:
        _thaw_in_the_end(domain, lingers)


def thaw(domain: Domain) -> None:
    """Have the guest's file systems go on, where its agent can and they do not."""
    if domain.running is None:
        return
    try:
        domain.handle.agentSetResponseTimeout(AGENT_SECONDS)
        domain.handle.fsThaw()
    except libvirt.libvirtError as error:
        # Of one that is not there nobody hears; one that refuses has nothing to thaw.
        if domain.running.agent and code_of(error) in SILENT:
            raise MaybeFrozen from error


def _thaw_in_the_end(domain: Domain, lingers: Callable[[], object]) -> None:
    """Thaw a guest also where it freezes only now."""
    deadline = time.monotonic() + THAW_SECONDS
    while True:
        try:
            return thaw(domain)
        except MaybeFrozen:
            if time.monotonic() > deadline:
                raise
        lingers()
        time.sleep(AGAIN_SECONDS)
        domain = read(domain.handle) or domain  # it may have been restarted meanwhile
