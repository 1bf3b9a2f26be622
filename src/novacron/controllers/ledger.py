"""Who holds what of which host: the scheduler's table, kept current by the caches.

Every process keeps one; only the leader's placer decides by it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from novacron.controllers.ports import HostKind, MachineKind
from novacron.core.errors import Rejected
from novacron.core.host import DeclaredHost
from novacron.core.machine import Holding, Resources
from novacron.runtime.cache import Cache, Change
from novacron.runtime.resource import Key, Resource
from novacron.scheduler import HostTable

__all__ = ["Ledger", "Owner"]


@dataclass(frozen=True, slots=True)
class Owner:
    """The object a machine belongs to."""

    resource: Resource
    key: Key


@dataclass(slots=True)
class Ledger:
    """The table of hosts, and which object each machine's UID belongs to."""

    host_kind: HostKind
    table: HostTable = field(default_factory=HostTable)
    owners: dict[str, Owner] = field(default_factory=dict)
    declared: dict[str, DeclaredHost] = field(default_factory=dict)
    _on_host: dict[str, set[str]] = field(default_factory=dict)
    _uids: dict[Owner, str] = field(default_factory=dict)
    _assumed: set[str] = field(default_factory=set)
    _assumed_moves: set[str] = field(default_factory=set)
    _watchers: list[Callable[[], None]] = field(default_factory=list)
    _host_watchers: list[Callable[[str], None]] = field(default_factory=list)

    def on_room(self, watcher: Callable[[], None]) -> None:
        """Have somebody told whenever there may be more room than before."""
        self._watchers.append(watcher)

    def on_host(self, watcher: Callable[[str], None]) -> None:
        """Have somebody told the name of every host that changes."""
        self._host_watchers.append(watcher)

    def machines_on(self, host: str) -> frozenset[str]:
        """Return the UIDs of all machines that hold something of a host."""
        return frozenset(self._on_host.get(host, ()))

    def moves_from(self, host: str) -> frozenset[str]:
        """Return the UIDs of machines on a host for which room is taken on another one."""
        return frozenset(uid for uid in self._on_host.get(host, ()) if self._booked(uid))

    def follow_hosts(self, cache: Cache) -> None:
        """Keep the table's hosts as a cache has them."""
        cache.subscribe(self._host_changed)

    def follow_machines(self, cache: Cache, kind: MachineKind) -> None:
        """Keep what machines hold as a cache has it."""

        def changed(change: Change) -> None:
            owner = Owner(cache.resource, change.key)
            if change.object is None:
                self._gone(owner)
            else:
                self._seen(owner, change, kind)

        cache.subscribe(changed)

    def assume(self, uid: str, host: str, resources: Resources) -> None:
        """Take room for a decision that is not written yet."""
        self._assumed.add(uid)
        self._take(uid, host, resources)

    def assume_move(self, uid: str, host: str, resources: Resources) -> None:
        """Take room for a move that is not written yet."""
        self._assumed_moves.add(uid)
        self._book(uid, host, resources)

    def move_written(self, uid: str) -> None:
        """Say that a move is in the cache now."""
        self._assumed_moves.discard(uid)

    def is_assumed_move(self, uid: str) -> bool:
        """Say whether a move is not known to be written."""
        return uid in self._assumed_moves

    def settle_move(self, uid: str, booking: Holding | None) -> None:
        """Take for true what the server says of a move that is not known to be written."""
        self._assumed_moves.discard(uid)
        if booking is None:
            self._unbook(uid)
        else:
            self._book(uid, booking.host, booking.resources)

    def undo_move(self, uid: str) -> None:
        """Take back a move that could not be written."""
        self._assumed_moves.discard(uid)
        self._unbook(uid)

    def is_assumed(self, uid: str) -> bool:
        """Say whether a decision about a machine is not known to be written."""
        return uid in self._assumed

    def written(self, uid: str) -> None:
        """Say that a decision is in the cache now."""
        self._assumed.discard(uid)

    def undo(self, uid: str, before: tuple[str, Resources] | None) -> None:
        """Take back a decision that could not be written."""
        self._assumed.discard(uid)
        if before is None:
            self._release(uid)
        else:
            self._take(uid, *before)

    def _host_changed(self, change: Change) -> None:
        name = change.key.name
        if change.object is None:
            self.declared.pop(name, None)
            self.table.remove(name)
            return
        try:
            host = self.declared[name] = self.host_kind.host(change.object)
            self.table.upsert(host.seen_by_scheduler())
        except Rejected:
            self.declared.pop(name, None)
            self.table.remove(name)
        self._more_room()
        for watcher in self._host_watchers:
            watcher(name)

    def _seen(self, owner: Owner, change: Change, kind: MachineKind) -> None:
        assert change.object is not None
        uid = change.object["metadata"]["uid"]
        known = self._uids.get(owner)
        if known is not None and known != uid:
            self._gone(owner)  # deleted and made again under the same name between two lists
        self._uids[owner] = uid
        self.owners[uid] = owner
        if uid in self._assumed:
            return
        holding = kind.holding(change.object)
        if holding is not None:
            self._take(uid, holding.host, holding.resources)
        else:
            self._release(uid)
        if uid not in self._assumed_moves:
            self.settle_move(uid, kind.booking(change.object))

    def _gone(self, owner: Owner) -> None:
        uid = self._uids.pop(owner, None)
        if uid is None:
            return
        self.owners.pop(uid, None)
        self._assumed.discard(uid)
        self.undo_move(uid)
        self._release(uid)

    def _booked(self, uid: str) -> str | None:
        held = self.table.held(_move_of(uid))
        return held.host if held else None

    def _book(self, uid: str, host: str, resources: Resources) -> None:
        self.table.take(_move_of(uid), host, resources)

    def _unbook(self, uid: str) -> None:
        if self._booked(uid) is not None:
            self.table.release(_move_of(uid))
            self._more_room()

    def _take(self, uid: str, host: str, resources: Resources) -> None:
        before = self.table.held(uid)
        if before is not None and before.host != host:
            self._release(uid)
        self.table.take(uid, host, resources)
        self._on_host.setdefault(host, set()).add(uid)
        if before is not None and not before.resources.fits(resources):
            self._more_room()

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

    def _more_room(self) -> None:
        for watcher in self._watchers:
            watcher()


def _move_of(uid: str) -> str:
    """Return under which name a machine holds room where it moves to."""
    return f"{uid}/move"
