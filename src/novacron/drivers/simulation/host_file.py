"""Turns at the simulation file, for each thing that a simulated host can do."""

import random as chance
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from novacron.core.errors import Rejected
from novacron.core.machine import MachineRef
from novacron.drivers.simulation.errors import core_errors
from novacron.drivers.simulation.faults import Operation, strike
from novacron.drivers.simulation.host import SimulatedHost
from novacron.drivers.simulation.store import Store
from novacron.drivers.simulation.turn import Turn, microseconds

__all__ = ["HostFile", "utc_now"]


def utc_now() -> datetime:
    """Tell the time; operations end at moments of the wall clock because they outlive us."""
    return datetime.now(UTC)


class HostFile:
    """One host's part of a file, opened when first needed."""

    def __init__(
        self,
        path: Path,
        host: SimulatedHost,
        *,
        clock: Callable[[], datetime] = utc_now,
        random: Callable[[], float] = chance.random,
    ) -> None:
        self._path = path
        self._host = host
        self._clock = clock
        self._random = random
        self._opened: tuple[Store, int] | None = None

    @contextmanager
    def _turn(self) -> Iterator[Turn]:
        """Open a transaction on the file in which all that is due has happened."""
        with core_errors(self._path):
            store, host_id = self._file()
            turn = Turn(store, self._host, host_id, microseconds(self._clock()))
            with store.writing(turn.now_us):
                yield turn

    def _file(self) -> tuple[Store, int]:
        """Open the file when first needed: a host is declared before its file can be read."""
        if self._opened is None:
            store = Store.share(self._path)
            try:
                self._opened = store, store.host_id(self._host.name)
            except BaseException:
                store.let_go()
                raise
        return self._opened

    def _admit(self, operation: Operation, ref: MachineRef) -> None:
        self._require_own(ref.host)
        strike(self._host.faults, operation, ref.name, self._random)

    def _require_own(self, host: str) -> None:
        """Refuse to speak for another host: an empty answer would look like lost machines."""
        if host != self._host.name:
            raise Rejected(f"host {host} is not reached through host {self._host.name}")
