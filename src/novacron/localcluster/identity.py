"""Who a process is: safe against reused process ids and against reboots.

A process id alone names whoever has it today. Together with the moment the process started
and the boot it belongs to it names one process for ever.
"""

import os
import select
import signal
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

__all__ = ["PROC", "Identity", "boot", "marked"]

PROC = Path("/proc")
_DEAD = frozenset("ZX")


@dataclass(frozen=True, slots=True)
class Identity:
    """One process of one boot of this machine."""

    pid: int
    started_ticks: int
    boot: str

    @classmethod
    def of(cls, pid: int) -> "Identity | None":
        """Return who has this process id now, or None when nobody is alive under it."""
        stat = _stat(pid)
        if stat is None or stat[0] in _DEAD:
            return None
        return cls(pid, int(stat[19]), boot())

    def alive(self) -> bool:
        """Say whether exactly this process still runs; a zombie does not."""
        return Identity.of(self.pid) == self

    def signal(self, number: signal.Signals, *, group: bool = False) -> None:
        """Send the signal to this process, or to its whole group; gone is fine."""
        with suppress(ProcessLookupError):
            handle = os.pidfd_open(self.pid)
            try:
                # The handle holds the process id: checked once, it cannot change hands.
                if not self.alive():
                    return
                if group:
                    os.killpg(self.pid, number)
                else:
                    signal.pidfd_send_signal(handle, number)
            finally:
                os.close(handle)

    def wait(self, timeout: timedelta) -> bool:
        """Wait until the process has ended; False when it outlived the timeout."""
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return True
        try:
            # Not ``alive``: the first thread of a killed process is a zombie while the others
            # still end, and hold its ports.
            stat = _stat(self.pid)
            if stat is None or int(stat[19]) != self.started_ticks:
                return True
            poll = select.poll()
            poll.register(handle, select.POLLIN)
            return bool(poll.poll(timeout.total_seconds() * 1000))
        finally:
            os.close(handle)


def marked(mark: str) -> list[Identity]:
    """Return every process of this user whose environment carries the mark."""
    needle = mark.encode()
    found = []
    for entry in PROC.iterdir():
        if not entry.name.isdecimal():
            continue
        with suppress(OSError):
            if needle in (entry / "environ").read_bytes().split(b"\0"):
                found.append(Identity.of(int(entry.name)))
    return [identity for identity in found if identity and identity.pid != os.getpid()]


def _stat(pid: int) -> list[str] | None:
    # The command's name comes first, in brackets, and may itself hold brackets and blanks.
    try:
        return (PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None


def boot() -> str:
    """Return what distinguishes this boot of the machine from all others."""
    return (PROC / "sys/kernel/random/boot_id").read_text().strip()
