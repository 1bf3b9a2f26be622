"""The simulation file: one SQLite database that several processes share.

Knows rows and transactions, not what an operation means. An operation under way is a row with
the moment at which it ends; nobody has to be running when that moment comes, because whoever
opens a transaction next first settles all that is due.
"""

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from novacron.core.machine import Power, Resources
from novacron.drivers.simulation import statements as sql
from novacron.drivers.simulation.schema import SCHEMA, SCHEMA_VERSION, SNAPSHOTS

__all__ = ["HostRow", "MachineRow", "NewMachine", "Store"]

# Writers hold the file for microseconds; one that cannot get it in this time waits for a
# stopped process, and the loop it would block has other hosts to serve.
BUSY_TIMEOUT_S = 1.0

SeenRow = tuple[int, str, str, int, int, int, str, str | None, str]


class HostRow(NamedTuple):
    """What machines hold of a host, and where its unused addresses begin."""

    held_vcpus: int
    held_memory_mib: int
    held_disk_mib: int
    next_slot: int
    has_free_slots: int

    @property
    def held(self) -> Resources:
        """What machines hold of the host together."""
        return Resources(self.held_vcpus, self.held_memory_mib, self.held_disk_mib)


class MachineRow(NamedTuple):
    """One machine as the file has it."""

    number: int
    uid: str
    power: str
    vcpus: int
    memory_mib: int
    disk_mib: int
    addresses: str
    change: str | None
    volumes: str
    ends_us: int | None
    namespace: str
    name: str
    next_vcpus: int
    next_memory_mib: int
    next_disk_mib: int
    volumes_mib: int

    @property
    def size(self) -> Resources:
        """What it has now."""
        return Resources(self.vcpus, self.memory_mib, self.disk_mib)

    @property
    def next_size(self) -> Resources:
        """What it will have when the operation under way has ended."""
        return Resources(self.next_vcpus, self.next_memory_mib, self.next_disk_mib)


class NewMachine(NamedTuple):
    """A machine about to be written; without a UID it is somebody else's."""

    uid: str | None
    namespace: str
    name: str
    size: Resources
    addresses: tuple[str, ...] = ()
    slots: tuple[int, ...] = ()
    power: Power = Power.OFF
    volumes: str = "[]"
    volumes_mib: int = 0


class Store:
    """One connection to a simulation file, shared by all drivers of a thread that use it."""

    _shared: dict[tuple[int, int, str], "Store"] = {}

    def __init__(self, path: str) -> None:
        self._connection = _connect(path)
        self._execute = self._connection.execute
        self._users = 0

    @classmethod
    def share(cls, path: Path) -> "Store":
        """Return the connection of this process and thread to the file, opened if need be.

        SQLite connections must cross neither a fork nor a thread, hence the key.
        """
        key = (os.getpid(), threading.get_ident(), str(path.resolve()))
        store = cls._shared.get(key)
        if store is None:
            store = cls._shared[key] = cls(key[2])
        store._users += 1
        return store

    def let_go(self) -> None:
        """Close the connection when its last user lets go of it."""
        self._users -= 1
        if not self._users:
            self._connection.close()
            for key in [key for key, store in self._shared.items() if store is self]:
                del self._shared[key]

    @contextmanager
    def writing(self, now_us: int) -> Iterator[None]:
        """Open a transaction in which all that is due has happened.

        What the caller begins with no delay is due as well, and is settled before the commit.
        """
        self._execute("BEGIN IMMEDIATE")
        try:
            self._settle(now_us)
            yield
            self._settle(now_us)
            self._execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._execute("ROLLBACK")
            raise

    def settle(self, now_us: int) -> None:
        """Finish all that is due; costs one look at an index when nothing is."""
        if self._execute(sql.ANY_DUE, (now_us,)).fetchone():
            with self.writing(now_us):
                pass

    def _settle(self, now_us: int) -> None:
        if self._execute(sql.ANY_DUE, (now_us,)).fetchone():
            self._execute(sql.REMOVE_DUE, (now_us,))
            self._execute(sql.FINISH_DUE, (now_us,))

    def host_id(self, name: str) -> int:
        """Return the host's number in the file, which it gets when first asked for."""
        found = self._execute(sql.FIND_HOST, (name,)).fetchone()
        if found is None:
            self._execute(sql.ADD_HOST, (name,))
            found = self._execute(sql.FIND_HOST, (name,)).fetchone()
        return int(found[0])

    def host(self, host_id: int) -> HostRow:
        """Return the host's books."""
        return HostRow._make(self._execute(sql.READ_HOST, (host_id,)).fetchone())

    def machine(self, host_id: int, uid: str) -> MachineRow | None:
        """Find a machine by its owner's UID."""
        row = self._execute(sql.FIND_MACHINE, (host_id, uid)).fetchone()
        return None if row is None else MachineRow._make(row)

    def machines(self, host_id: int) -> Iterator[SeenRow]:
        """Return the host's machines that have an owner's UID, bare because they may be many."""
        return iter(self._execute(sql.LIST_MACHINES, (host_id,)))

    def run(self, statement: str, *values: str | int) -> sqlite3.Cursor:
        """Run any statement; for the world outside, which is in no hurry."""
        return self._execute(statement, values)

    def add(self, host_id: int, new: NewMachine, *, made_us: int | None = None) -> None:
        """Write a new machine, whose making ends at that moment if not at once."""
        change = None if made_us is None else "create"
        who = (host_id, new.uid, new.namespace, new.name, new.power)
        size = (new.size.vcpus, new.size.memory_mib, new.size.disk_mib)
        slots = str(list(new.slots))
        where = (",".join(new.addresses), slots)
        volumes = (new.volumes, new.volumes_mib)
        self._execute(sql.ADD_MACHINE, (*who, *size, *where, change, made_us, *volumes))

    def change_power(self, number: int, power: Power, change: str, ends_us: int) -> None:
        """Begin a change of power, in place of any operation under way."""
        self._execute(sql.CHANGE_POWER, (number, power, change, ends_us))

    def change_size(
        self, number: int, size: Resources, change: str, ends_us: int, volumes: tuple[str, int]
    ) -> None:
        """Begin a change of size; the volumes, a text and their size, are other ones at once."""
        given = (size.vcpus, size.memory_mib, size.disk_mib)
        self._execute(sql.CHANGE_SIZE, (number, *given, change, ends_us, *volumes))

    def remove(self, number: int, change: str, ends_us: int) -> None:
        """Begin a removal; the machine keeps all it has until that moment."""
        self._execute(sql.CHANGE_NOTHING_YET, (number, change, ends_us))

    def send(self, number: int, to_host_id: int, ends_us: int) -> None:
        """Begin to move a machine; it holds room on both hosts until that moment."""
        self._execute(sql.SEND, (number, to_host_id, ends_us))

    def stay(self, number: int) -> None:
        """Have a machine that moves stay where it is."""
        self._execute(sql.STAY, (number,))

    def target(self, number: int) -> str | None:
        """Return the host that a machine moves to."""
        found = self._execute(sql.TARGET, (number,)).fetchone()
        return None if found is None else str(found[0])

    def anywhere(self, uid: str) -> int | None:
        """Return the number of a machine, whichever host it is on."""
        found = self._execute(sql.ANYWHERE, (uid,)).fetchone()
        return None if found is None else int(found[0])

    def take_slots(self, host_id: int, host: HostRow, count: int) -> tuple[int, ...]:
        """Take the lowest free addresses of the host's network."""
        free: list[int] = []
        if host.has_free_slots:
            free = [slot for (slot,) in self._execute(sql.FREE_SLOTS, (host_id, count))]
        for slot in free:
            self._execute(sql.USE_FREE_SLOT, (host_id, slot))
        missing = count - len(free)
        if missing:
            self._execute(sql.USE_NEW_SLOTS, (host_id, missing))
        return (*free, *range(host.next_slot, host.next_slot + missing))


def _connect(path: str) -> sqlite3.Connection:
    """Open the file and make its tables if it is new."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None)
    try:
        _into_wal(connection)
        # A killed process loses nothing without syncs: what it wrote is in the kernel. Only a
        # crash of the whole computer could hurt the file, and simulated machines are not worth
        # stopping the event loop for a disk that the API server's etcd is also waiting for.
        connection.execute("PRAGMA synchronous = OFF")
        _make_tables(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _into_wal(connection: sqlite3.Connection) -> None:
    """Let readers and a writer not wait for each other.

    The switch needs the file alone and SQLite does not wait for that, so processes that open a
    new file at the same moment have to try again; afterwards the file remembers.
    """
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def _make_tables(connection: sqlite3.Connection) -> None:
    if _version(connection) == 0:
        # One transaction, so that a process killed in here leaves a new file, not half a one.
        connection.executescript(f"BEGIN IMMEDIATE; {SCHEMA} COMMIT;")
    if _version(connection) != SCHEMA_VERSION:
        raise sqlite3.DatabaseError("it was written by another version of NovaCron")
    connection.executescript(SNAPSHOTS)


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
