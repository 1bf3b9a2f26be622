"""Programs that run inside the guests of one libvirt host, once for each start of a guest.

What was begun is written down before it is, and the guest itself sees to it that a thing begun
twice is done once: whoever dies in between leaves nothing undone and nothing done twice.
"""

from collections.abc import Callable
from dataclasses import replace

from novacron.core.errors import Busy
from novacron.core.hooks import GuestProgram, Ran
from novacron.core.machine import MachineRef
from novacron.drivers.libvirt.agent import Agent, silent
from novacron.drivers.libvirt.build import Builder
from novacron.drivers.libvirt.look import Domain
from novacron.drivers.libvirt.record import Begun, Record
from novacron.drivers.libvirt.work import HostWork, present

__all__ = ["LibvirtGuestCommands"]

# In memory inside the guest, so that a guest which boots anew knows nothing of it.
PLACE = "/run/novacron-hooks"
# The directory is made once, whoever asks. A result is there only when it is whole, and not at all
# when there is no room for it: it counts as late then. Where the guest has setsid, all that a late
# program has begun is ended with it.
ONCE = f"""\
umask 077
own={PLACE}/$1 limit=$2
shift 2
mkdir -p {PLACE} && mkdir "$own" 2>/dev/null || exit 0
$(command -v setsid) "$@" >"$own/output" 2>&1 </dev/null &
program=$!
end() {{ kill "$1" "-$program" || kill "$1" "$program"; }}
(
    sleep "$limit"
    : >"$own/late"
    end -TERM
    sleep 5
    end -KILL
) >/dev/null 2>&1 &
watch=$!
wait "$program"
code=$?
kill "$watch"
if [ -e "$own/late" ]; then
    code=124
    end -KILL 2>/dev/null
fi
echo "$code" >"$own/code.new" && mv "$own/code.new" "$own/code"
"""


class LibvirtGuestCommands(HostWork):
    """Satisfies ``GuestCommands``."""

    async def run_once(self, ref: MachineRef, name: str, program: GuestProgram) -> Ran | None:
        """Have a program run in a guest, once for each start; None while it runs."""

        def run(builder: Builder) -> Ran | None:
            domain = present(builder, ref)
            record = _record(domain)
            entry = record.named(name)
            if entry is None or (entry.ran and entry.digest != program.digest):
                entry = Begun.new(name, program.digest)
                record.having(entry).write(domain.handle)
            return entry.ran or _followed(domain, record, entry, program)

        try:
            return await self._work(run)
        finally:
            self._outdated(ref.uid)

    async def note_ran(self, ref: MachineRef, ran: Ran) -> None:
        """Remember until the guest stops that something was done for it."""

        def note(record: Record) -> Record:
            entry = record.named(ran.name) or Begun.new(ran.name, ran.digest)
            return record.having(replace(entry, digest=ran.digest, code=ran.code, note=ran.note))

        await self._rewrite(ref, note)

    async def forget_ran(self, ref: MachineRef, name: str) -> None:
        """Forget what was done under a name."""
        await self._rewrite(ref, lambda record: record.without(name))

    async def _rewrite(self, ref: MachineRef, change: Callable[[Record], Record]) -> None:
        def rewrite(builder: Builder) -> None:
            domain = present(builder, ref)
            change(_record(domain)).write(domain.handle)

        try:
            await self._work(rewrite)
        finally:
            self._outdated(ref.uid)

    def _outdated(self, uid: str) -> None:
        """Take note that what was seen of a machine does not tell all of it any more."""


def _record(domain: Domain) -> Record:
    if domain.running is None:
        raise Busy("the machine is not running", reason="NotRunning")
    return domain.running.record


def _followed(domain: Domain, record: Record, entry: Begun, program: GuestProgram) -> Ran | None:
    """Return how a program ended; begin it if the guest knows nothing of it."""
    assert domain.running is not None
    if not domain.running.agent:
        raise silent()
    agent, place = Agent(domain.handle), f"{PLACE}/{entry.token}"
    code = agent.read(f"{place}/code")
    if code is not None:
        entry = entry.ended(code, f"what it said is in {place}/output there")
        record.having(entry).write(domain.handle)
        return entry.ran
    if agent.read(f"{place}/output") is None:
        limit = str(int(program.timeout.total_seconds()))
        wrapped = ("/bin/sh", "-c", ONCE, "novacron-hook", entry.token, limit)
        agent.begin((*wrapped, *program.command))
    return None
