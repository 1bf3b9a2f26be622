"""Who holds what of which host: the scheduler's table, kept current by the caches.

Every process keeps one; only the leader's placer decides by it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from novacron.controllers.ports import HostKind, MachineKind, PlacedKind
from novacron.core.affinity import Neighbour
from novacron.core.errors import Rejected
from novacron.core.host import DeclaredHost
from novacron.core.machine import Holding, Machine
from novacron.runtime.cache import Cache, Change
from novacron.runtime.resource import Key, Object, Resource
from novacron.scheduler import Held, HostTable, overdrawn

__all__ = ["Ledger", "Occupancy", "Owner"]


@dataclass(frozen=True, slots=True)
class Owner:
    """The object a machine belongs to."""

    resource: Resource
    key: Key


@dataclass(frozen=True, slots=True)
class Occupancy:
    """The UIDs of machines that are on a host, and of those that are on their way to it."""

    there: frozenset[str]
    coming: frozenset[str]

    def __bool__(self) -> bool:
        return bool(self.there or self.coming)

    def __str__(self) -> str:
        """Say how many there are, for whoever wants to be rid of the host."""
        parts = [f"{_counted(self.there)} on it"] if self.there else []
        if self.coming:
            parts.append(f"{_counted(self.coming)} on the way to it")
        return " and ".join(parts)


@dataclass(slots=True)
class Ledger:
    """The table of hosts, and which object each machine's UID belongs to."""

    host_kind: HostKind
    table: HostTable = field(default_factory=HostTable)
    owners: dict[str, Owner] = field(default_factory=dict)
    declared: dict[str, DeclaredHost] = field(default_factory=dict)
    _on_host: dict[str, set[str]] = field(default_factory=dict)
    _coming: dict[str, set[str]] = field(default_factory=dict)
    _addresses: dict[str, str] = field(default_factory=dict)
    _uids: dict[Owner, str] = field(default_factory=dict)
    _assumed: set[str] = field(default_factory=set)
    _assumed_moves: set[str] = field(default_factory=set)
    _generations: dict[str, int] = field(default_factory=dict)
    _given: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _watchers: list[Callable[[], None]] = field(default_factory=list)
    _company_watchers: list[Callable[[], None]] = field(default_factory=list)
    _host_watchers: list[Callable[[str], None]] = field(default_factory=list)
    _move_watchers: list[Callable[[], None]] = field(default_factory=list)

    def on_room(self, watcher: Callable[[], None]) -> None:
        """Have somebody told whenever there may be more room than before."""
        self._watchers.append(watcher)

    def on_company(self, watcher: Callable[[], None]) -> None:
        """Have somebody told whenever a host has another machine, or one with other labels."""
        self._company_watchers.append(watcher)

    def on_host(self, watcher: Callable[[str], None]) -> None:
        """Have somebody told the name of every host that changes or goes."""
        self._host_watchers.append(watcher)

    def on_move(self, watcher: Callable[[], None]) -> None:
        """Have somebody told whenever a machine is to move to another host."""
        self._move_watchers.append(watcher)

    def machines_on(self, host: str) -> frozenset[str]:
        """Return the UIDs of all machines that hold something of a host."""
        return frozenset(self._on_host.get(host, ()))

    def moves_from(self, host: str) -> frozenset[str]:
        """Return the UIDs of machines on a host for which room is taken on another one."""
        return frozenset(uid for uid in self._on_host.get(host, ()) if self._booked(uid))

    def occupancy(self, host: str) -> Occupancy:
        """Return who is on a host or on the way to it; one without either can be let go."""
        coming = frozenset(self._coming.get(host, ()))
        there = self.machines_on(host)
        return Occupancy(there, coming - there)

    def overdrawn(self, machine: Machine) -> str | None:
        """Say of what the host that a machine is to come to was promised more than it has.

        Every process can tell that of what others decided, and of records that were put back.
        """
        return overdrawn(self.table, _move_of(machine.uid) if machine.move else machine.uid)

    def follow_hosts(self, cache: Cache) -> None:
        """Keep the table's hosts as a cache has them."""
        cache.subscribe(self._host_changed)

    def follow_machines(self, cache: Cache, kind: PlacedKind) -> None:
        """Keep what machines hold as a cache has it."""

        def changed(change: Change) -> None:
            owner = Owner(cache.resource, change.key)
            if change.object is None:
                self._gone(owner)
            else:
                self._seen(owner, change, kind)

        cache.subscribe(changed)

    def follow_unplaced(self, cache: Cache, kind: MachineKind) -> None:
        """Keep whose machines are where, of a kind that takes no room of any host of ours."""

        def changed(change: Change) -> None:
            owner = Owner(cache.resource, change.key)
            before = self._uids.get(owner)
            uid = change.object["metadata"]["uid"] if change.object else None
            if before is not None and before != uid:
                self._gone(owner)
                self._be_at(before, None)
            holding = kind.holding(change.object) if change.object else None
            if uid is not None and holding is not None:
                self._uids[owner] = uid
                self.owners[uid] = owner
                self._be_at(uid, holding.host)

        cache.subscribe(changed)

    def follow_namespaces(self, cache: Cache) -> None:
        """Keep how namespaces are labelled as a cache has it, for rules that choose by that."""

        def changed(change: Change) -> None:
            found = change.object
            labels = None if found is None else found["metadata"].get("labels") or {}
            if self.table.company.set_namespace(change.key.name, labels):
                self._more_room()
                self._other_company()

        cache.subscribe(changed)

    def assume(self, uid: str, held: Held) -> None:
        """Take room for a decision that is not written yet."""
        self._assumed.add(uid)
        self._given.setdefault(uid, ())
        self._take(uid, held)

    def given(self, uid: str) -> tuple[str, ...] | None:
        """Return all hosts that were a machine's since this process placed it first; else None.

        Whoever places machines is the only one who does, so it was nowhere else meanwhile.
        """
        return self._given.get(uid)

    def assume_move(self, uid: str, held: Held) -> None:
        """Take room for a move that is not written yet."""
        self._assumed_moves.add(uid)
        self._book(uid, held)

    def is_assumed_move(self, uid: str) -> bool:
        """Say whether a move is not known to be written."""
        return uid in self._assumed_moves

    def settle_move(self, uid: str, obj: Object | None, kind: PlacedKind) -> None:
        """Take for true what is written of a machine's move, now that nothing is assumed of it."""
        self._assumed_moves.discard(uid)
        booking = kind.booking(obj) if obj and _is_of(obj, uid) else None
        if obj is None or booking is None:
            self._unbook(uid)
        else:
            self._book(uid, self._as_held(obj, kind, booking))

    def is_assumed(self, uid: str) -> bool:
        """Say whether a decision about a machine is not known to be written."""
        return uid in self._assumed

    def settle(self, uid: str, obj: Object | None, kind: PlacedKind) -> None:
        """Take for true what is written of a machine, now that nothing is assumed of it.

        What came meanwhile was not counted, and may be all that will ever come.
        """
        self._assumed.discard(uid)
        held = self.held(obj, kind) if obj and _is_of(obj, uid) else None
        if held is not None:
            self._take(uid, held)
        else:
            self._release(uid)

    def held(self, obj: Object, kind: PlacedKind) -> Held | None:
        """Return what an object's machine takes as the object says."""
        holding = kind.holding(obj)
        return None if holding is None else self._as_held(obj, kind, holding)

    def _as_held(self, obj: Object, kind: PlacedKind, holding: Holding) -> Held:
        devices = tuple(device.address for device in holding.devices)
        return Held(holding.host, holding.resources, self._neighbour(obj, kind), devices)

    def _be_at(self, uid: str, address: str | None) -> None:
        before = self._addresses.pop(uid, None)
        if before is not None and before != address:
            self._on_host[before].discard(uid)
        if address is not None:
            self._addresses[uid] = address
            self._on_host.setdefault(address, set()).add(uid)

    def _host_changed(self, change: Change) -> None:
        name = change.key.name
        if change.object is None:
            self.declared.pop(name, None)
            self.table.remove(name)
            self._tell_of_host(name)
            return
        try:
            host = self.declared[name] = self.host_kind.host(change.object)
            self.table.upsert(host.seen_by_scheduler())
        except Rejected:
            self.declared.pop(name, None)
            self.table.remove(name)
        self._more_room()
        self._tell_of_host(name)

    def _seen(self, owner: Owner, change: Change, kind: PlacedKind) -> None:
        assert change.object is not None
        uid = change.object["metadata"]["uid"]
        known = self._uids.get(owner)
        if known is not None and known != uid:
            self._gone(owner)  # deleted and made again under the same name between two lists
        self._uids[owner] = uid
        self.owners[uid] = owner
        if uid not in self._assumed:
            self.settle(uid, change.object, kind)
        if uid not in self._assumed_moves:
            self.settle_move(uid, change.object, kind)

    def _neighbour(self, obj: Object, kind: PlacedKind) -> Neighbour | None:
        """Return what a machine is to others; translated anew only when its spec changed."""
        uid, generation = obj["metadata"]["uid"], obj["metadata"]["generation"]
        before = self.table.held(uid)
        if before is not None and self._generations.get(uid) == generation:
            return before.neighbour
        self._generations[uid] = generation
        try:
            return kind.neighbour(obj)
        except Rejected:
            return None

    def _gone(self, owner: Owner) -> None:
        uid = self._uids.pop(owner, None)
        if uid is None:
            return
        self.owners.pop(uid, None)
        self._generations.pop(uid, None)
        self._given.pop(uid, None)
        self._assumed.discard(uid)
        self._assumed_moves.discard(uid)
        self._unbook(uid)
        self._release(uid)

    def _booked(self, uid: str) -> str | None:
        held = self.table.held(_move_of(uid))
        return held.host if held else None

    def _book(self, uid: str, held: Held) -> None:
        before = self._booked(uid)
        if before is not None and before != held.host:
            self._coming[before].discard(uid)
        self._take_row(_move_of(uid), held)
        self._coming.setdefault(held.host, set()).add(uid)
        if before != held.host:
            for watcher in self._move_watchers:
                watcher()

    def _unbook(self, uid: str) -> None:
        if (before := self._booked(uid)) is not None:
            self.table.release(_move_of(uid))
            self._coming[before].discard(uid)
            self._more_room()

    def _take(self, uid: str, held: Held) -> None:
        before = self.table.held(uid)
        if before is not None and before.host != held.host:
            self._release(uid)
        self._take_row(uid, held)
        self._on_host.setdefault(held.host, set()).add(uid)
        given = self._given.get(uid)
        if given is not None and held.host not in given:
            self._given[uid] = (*given, held.host)
        if before is None or before.neighbour != held.neighbour:
            self._other_company()
        if before is not None and _frees(before, held):
            self._more_room()

    def _take_row(self, holder: str, held: Held) -> None:
        self.table.take(
            holder, held.host, held.resources, neighbour=held.neighbour, devices=held.devices
        )

    def _release(self, uid: str) -> None:
        before = self.table.held(uid)
        if before is None:
            return
        self.table.release(uid)
        machines = self._on_host[before.host]
        machines.discard(uid)
        if not machines:
            del self._on_host[before.host]
        self._more_room()

    def _tell_of_host(self, name: str) -> None:
        for watcher in self._host_watchers:
            watcher(name)

    def _more_room(self) -> None:
        for watcher in self._watchers:
            watcher()

    def _other_company(self) -> None:
        for watcher in self._company_watchers:
            watcher()


def _move_of(uid: str) -> str:
    """Return under which name a machine holds room where it moves to."""
    return f"{uid}/move"


def _is_of(obj: Object, uid: str) -> bool:
    return bool(obj["metadata"]["uid"] == uid)


def _counted(machines: frozenset[str]) -> str:
    return "1 machine is" if len(machines) == 1 else f"{len(machines)} machines are"


def _frees(before: Held, now: Held) -> bool:
    """Say whether there can be room for somebody that there was not before."""
    return (
        not before.resources.fits(now.resources)
        or before.neighbour != now.neighbour
        or not set(before.devices) <= set(now.devices)
    )
