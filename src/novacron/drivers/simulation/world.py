"""The world outside: whoever changes simulated machines behind the operator's back.

For tests, demonstrations and the command line. What happens here happens at once, asks nobody
and obeys no capacity, as an administrator at the hypervisor's own console would.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Self

from novacron.core.machine import Power, Resources
from novacron.core.volume import KeptVolume
from novacron.drivers.simulation import convert
from novacron.drivers.simulation.errors import core_errors
from novacron.drivers.simulation.hardware import handed_over
from novacron.drivers.simulation.host_file import utc_now
from novacron.drivers.simulation.store import NewMachine, Store
from novacron.drivers.simulation.turn import microseconds

__all__ = ["SimulatedMachine", "World"]

MACHINES = (
    "SELECT hosts.name, number, uid, namespace, machines.name, power, addresses, change, vcpus, "
    "memory_mib, disk_mib FROM machines JOIN hosts ON hosts.id = host_id ORDER BY number"
)
# Whatever was under way is cut off: the machine is from now on what these statements say.
POWER = (
    "UPDATE machines SET power = ?2, next_power = ?2, next_vcpus = vcpus, "
    "next_memory_mib = memory_mib, next_disk_mib = disk_mib, to_host_id = NULL, change = NULL, "
    "ends_us = NULL WHERE uid = ?1"
)
SIZE = (
    "UPDATE machines SET vcpus = ?2, memory_mib = ?3, disk_mib = ?4, next_vcpus = ?2, "
    "next_memory_mib = ?3, next_disk_mib = ?4, next_power = power, to_host_id = NULL, "
    "change = NULL, ends_us = NULL WHERE uid = ?1"
)
# Every moment is after this one; what is not under way has no end that could come.
FINISH = "UPDATE machines SET ends_us = min(ends_us, 0) WHERE uid = ?1"
KEPT = "SELECT namespace, id, size_mib, storage_class FROM kept_volumes ORDER BY namespace, id"
DESTROY = "DELETE FROM machines WHERE uid = ?1"


@dataclass(frozen=True, slots=True)
class SimulatedMachine:
    """One machine as the simulation has it; without a UID it is somebody else's."""

    host: str
    vm_id: str
    uid: str | None
    namespace: str
    name: str
    power: Power
    resources: Resources
    addresses: tuple[str, ...]
    changing: str | None


class World:
    """Everything in one simulation file, on all its hosts."""

    def __init__(self, path: Path, *, clock: Callable[[], datetime] = utc_now) -> None:
        self._path = path
        self._clock = clock
        with core_errors(path):
            self._store = Store.share(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        with core_errors(self._path):
            self._store.let_go()

    def machines(self) -> list[SimulatedMachine]:
        """Tell of every machine on every host, also of those that carry nobody's UID."""
        with self._changing():
            rows = self._store.run(MACHINES).fetchall()
        return [
            SimulatedMachine(
                host,
                convert.vm_id(number),
                uid,
                namespace,
                name,
                Power(power),
                Resources(*size),
                convert.split_addresses(addresses),
                change,
            )
            for host, number, uid, namespace, name, power, addresses, change, *size in rows
        ]

    def kept_volumes(self) -> list[KeptVolume]:
        """Tell of every volume on every host whose machine is gone."""
        with self._changing():
            return [KeptVolume(*row) for row in self._store.run(KEPT).fetchall()]

    def devices(self) -> dict[tuple[str, str], str]:
        """Tell the UID of the machine that has each device, by host and address."""
        with self._changing():
            return handed_over(self._store)

    def power_off(self, uid: str) -> None:
        """Pull the plug."""
        self._touch(POWER, uid, Power.OFF)

    def power_on(self, uid: str) -> None:
        """Start it without asking."""
        self._touch(POWER, uid, Power.ON)

    def resize(self, uid: str, size: Resources) -> None:
        """Give it another size, even one its host has no room for."""
        self._touch(SIZE, uid, size.vcpus, size.memory_mib, size.disk_mib)

    def finish(self, uid: str) -> None:
        """Have what is under way with it be done by now, however long it was to take."""
        self._touch(FINISH, uid)

    def destroy(self, uid: str) -> None:
        """Remove it with all it owns."""
        self._touch(DESTROY, uid)

    def plant(self, host: str, name: str, size: Resources) -> None:
        """Put somebody else's running machine, which carries no UID, on a host."""
        with self._changing():
            new = NewMachine(None, "", name, size, power=Power.ON)
            self._store.add(self._store.host_id(host), new)

    def _touch(self, statement: str, uid: str, *values: str | int) -> None:
        with self._changing():
            touched = self._store.run(statement, uid, *values).rowcount
        if not touched:
            raise LookupError(f"no simulated machine carries the UID {uid}")

    @contextmanager
    def _changing(self) -> Iterator[None]:
        with core_errors(self._path), self._store.writing(microseconds(self._clock())):
            yield
