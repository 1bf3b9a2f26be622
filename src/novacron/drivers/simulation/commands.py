"""Programs inside simulated guests: two are known, all others succeed at once.

``sleep`` takes as many seconds as it is told, ``false`` fails. What was run is kept in the file
until the guest stops, which the file sees to itself.
"""

from pathlib import PurePosixPath
from typing import NamedTuple

from novacron.core.errors import Busy
from novacron.core.hooks import TIMED_OUT, GuestProgram, Ran
from novacron.core.machine import Power
from novacron.drivers.simulation.store import MachineRow, Store
from novacron.drivers.simulation.turn import Turn

__all__ = ["forget_ran", "note_ran", "ran_on", "run_once", "under_way_on"]

ALL = "SELECT name, digest, code, note, ends_us FROM runs WHERE machine = ? ORDER BY name"
WRITE = "INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?)"
FORGET = "DELETE FROM runs WHERE machine = ? AND name = ?"
SECOND_US = 1_000_000


class _Run(NamedTuple):
    name: str
    digest: str
    code: int
    note: str
    ends_us: int

    def by(self, now_us: int) -> Ran | None:
        """Return how it ended, if it has."""
        if self.ends_us > now_us:
            return None
        return Ran(self.name, self.digest, self.code, self.note)


def ran_on(store: Store, number: int, now_us: int) -> tuple[Ran, ...]:
    """Return what was done for a guest and has ended."""
    ended = (each.by(now_us) for each in _runs(store, number))
    return tuple(ran for ran in ended if ran is not None)


def under_way_on(store: Store, number: int, now_us: int) -> tuple[str, ...]:
    """Return the names of what was begun for a guest and has not ended."""
    return tuple(each.name for each in _runs(store, number) if each.by(now_us) is None)


def run_once(turn: Turn, row: MachineRow, name: str, program: GuestProgram) -> Ran | None:
    """Run a program in a guest unless it was; return how it ended once it has."""
    _require_running(row)
    run = next((each for each in _runs(turn.store, row.number) if each.name == name), None)
    if run is None or (run.by(turn.now_us) and run.digest != program.digest):
        seconds, code = _played(program)
        run = _Run(name, program.digest, code, "", turn.now_us + int(seconds * SECOND_US))
        turn.store.run(WRITE, row.number, *run)
    return run.by(turn.now_us)


def note_ran(turn: Turn, row: MachineRow, ran: Ran) -> None:
    """Remember that something was done for a guest."""
    _require_running(row)
    turn.store.run(WRITE, row.number, ran.name, ran.digest, ran.code, ran.note, turn.now_us)


def forget_ran(turn: Turn, row: MachineRow, name: str) -> None:
    """Forget what was done under a name."""
    turn.store.run(FORGET, row.number, name)


def _runs(store: Store, number: int) -> list[_Run]:
    return [_Run._make(each) for each in store.run(ALL, number)]


def _require_running(row: MachineRow) -> None:
    if row.power != Power.ON:
        raise Busy(f"machine {row.name} is not running", reason="NotRunning")


def _played(program: GuestProgram) -> tuple[float, int]:
    """Return how long a program takes and how it ends."""
    name, arguments = PurePosixPath(program.command[0]).name, program.command[1:]
    limit = program.timeout.total_seconds()
    if name == "sleep" and arguments and arguments[0].isdecimal():
        seconds = float(arguments[0])
        return (seconds, 0) if seconds <= limit else (limit, TIMED_OUT)
    return 0.0, int(name == "false")
