"""No place for disks is ever promised twice, whoever sees it, in whatever order things happen.

Beside the table runs a plain list of who has which volume where.
"""

from dataclasses import replace

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from novacron.core.host import Host, StorageRoom
from novacron.core.machine import Machine, Power, Resources
from novacron.core.resources import Share
from novacron.scheduler import HostTable, Placed, choose, fits, one_line, refusals

PATIENT = settings(deadline=None, suppress_health_check=list(HealthCheck))

ROOM = Resources(9, 9, 9)
# Two classes; of one there may be several places, one of which several hosts see, and so may
# hosts' own storage be. Who tells no size has no end.
OWN = st.sampled_from([(), (), (StorageRoom("", 9, "nas"),)])
FAST = st.sampled_from(
    [
        (),
        (StorageRoom("fast", 5),),
        (StorageRoom("fast", 6, "nfs"),),
        (StorageRoom("fast", 9, "nas"),),
    ]
)
SLOW = st.sampled_from([(), (StorageRoom("slow", 4),), (StorageRoom("slow", 6, "nfs"),)])
ROOMS = st.tuples(OWN, FAST, SLOW).map(lambda each: each[0] + each[1] + each[2])
NAMES = st.sampled_from([f"host-{number}" for number in range(4)])
# The second volume is any machine's that names it, as those are that several may have.
SHARES = st.tuples(
    st.integers(0, 3), st.integers(0, 3), st.sampled_from([("", 0), ("common", 2), ("common", 3)])
)
# What a machine has, by its UID and what follows, on which host.
Held = dict[str, tuple[str, Resources]]


def _size(uid: str, amounts: tuple[int, int, tuple[str, int]], disk: int) -> Resources:
    fast, slow, (volume, common) = amounts
    shares = [Share("fast", f"{uid}.a", fast), Share("slow", f"{uid}.b", slow)]
    shares += [Share("fast", volume, common)]
    return Resources(0, 0, disk, tuple(sorted(share for share in shares if share.mib)))


class Places(RuleBasedStateMachine):
    """A placer's day: machines come, go, grow and move between hosts that may see one place."""

    machines, moving = Bundle("machines"), Bundle("moving")

    def __init__(self) -> None:
        super().__init__()
        self.table = HostTable()
        self.hosts: dict[str, Host] = {}
        self.held: Held = {}
        self.count = 0

    @rule(name=NAMES, rooms=ROOMS, ready=st.sampled_from([True, True, False]))
    def declare(self, name: str, rooms: tuple[StorageRoom, ...], ready: bool) -> None:
        """Hosts keep what they have, so that an overfull place can only be our fault."""
        host = self.hosts.setdefault(name, Host(name, ROOM, storage=rooms))
        self.table.upsert(replace(host, ready=ready))

    @rule(name=NAMES)
    def remove(self, name: str) -> None:
        self.table.remove(name)

    @rule(target=machines, amounts=SHARES, disk=st.integers(0, 4))
    def place(self, amounts: tuple[int, int, tuple[str, int]], disk: int) -> object:
        self.count += 1
        uid = f"uid-{self.count}"
        return self._put(uid, _size(uid, amounts, disk), uid)

    @rule(uid=machines, amounts=SHARES, disk=st.integers(0, 4))
    def resize(self, uid: str, amounts: tuple[int, int, tuple[str, int]], disk: int) -> None:
        (host, _), size = self.held[uid], _size(uid, amounts, disk)
        if f"{uid}/move" not in self.held and fits(self.table, uid, host, size) is None:
            self._take(uid, host, size)

    @rule(target=moving, uid=consumes(machines))
    def begin_to_move(self, uid: str) -> object:
        """Where nothing else can take it, it is no longer among those that come and go."""
        host, size = self.held[uid]
        return self._put(uid, size, f"{uid}/move", leaving=host)

    @rule(target=machines, uid=consumes(moving), arrives=st.booleans())
    def end_the_move(self, uid: str, arrives: bool) -> str:
        uid = uid.removesuffix("/move")
        target, size = self.held.pop(f"{uid}/move")
        self.table.release(f"{uid}/move")
        if arrives:
            self._take(uid, target, size)
        return uid

    @rule(uid=consumes(machines))
    def release(self, uid: str) -> None:
        self.table.release(uid)
        del self.held[uid]

    @invariant()
    def no_place_is_promised_twice(self) -> None:
        for host in self.hosts.values():
            for room in host.storage:
                assert sum(self._in(host.name, room, self.held).values()) <= room.allocatable_mib

    def _put(self, uid: str, size: Resources, holder: str, leaving: str | None = None) -> object:
        wanted = Machine(uid, "default", "vm", size, "tiny", Power.ON, leaving=leaving)
        decision = choose(self.table, wanted)
        assert one_line(decision)
        refused = {each.host for each in refusals(decision) if each.filter == "Storage"}
        assert all(not self._has_room(name, uid, size) for name in refused)
        if not isinstance(decision, Placed):
            return multiple()
        assert self._has_room(decision.host, uid, size)
        self._take(holder, decision.host, size)
        return holder

    def _take(self, holder: str, host: str, size: Resources) -> None:
        self.table.take(holder, host, size)
        self.held[holder] = host, size

    def _has_room(self, name: str, uid: str, size: Resources) -> bool:
        """The rules once more, one place and one volume at a time."""
        held = {**self.held, f"{uid}/asked": (name, size)}
        rooms = self.hosts[name].storage
        return all(
            sum(self._in(name, room, held).values()) <= room.allocatable_mib for room in rooms
        )

    def _in(self, name: str, room: StorageRoom, held: Held) -> dict[str, int]:
        """Return what each volume takes of the place that a class is on a host."""
        found: dict[str, int] = {}
        for holder, (host, size) in held.items():
            uid = holder.partition("/")[0]
            for share in (Share("", uid, size.disk_mib), *size.shares):
                there = next(
                    (r for r in self.hosts[host].storage if r.storage_class == share.storage_class),
                    None,
                )
                same = there and (there.id == room.id if room.id else (host, there) == (name, room))
                if same:
                    found[share.volume] = max(found.get(share.volume, 0), share.mib)
        return found


TestNoPlaceIsEverPromisedTwice = Places.TestCase
TestNoPlaceIsEverPromisedTwice.settings = settings(PATIENT, max_examples=80, stateful_step_count=40)
