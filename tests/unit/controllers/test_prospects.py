"""Who could go to no other host, and who is looked at again when that changes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from machines import host
from novacron.app.registry import HOST_KIND
from novacron.controllers.ledger import Ledger
from novacron.controllers.prospects import Prospects
from novacron.controllers.tied import Tied, ties_of
from novacron.core.affinity import Affinity, HostTerm, Requirement
from novacron.core.machine import Machine, Observed, Power, Resources
from novacron.core.move import MovePolicy
from novacron.core.offer import Offer, OfferKind
from novacron.core.volume import COMMON, Access, Attachment, SeenVolume
from novacron.runtime.cache import Cache
from novacron.runtime.resource import Resource
from novacron.scheduler import Held

HOSTS = Resource("novacron.io", "v1alpha1", "hosts", "Host", namespaced=False)
SIZE = Resources(1, 512, 1024)
ONLY_CLEAR = ["LiveMigration", "MigrationTarget"]
ABLE = ["EncryptedMigration", *ONLY_CLEAR]
KINDS: dict[int, dict[str, Any]] = {
    0: {},
    1: {"capabilities": ONLY_CLEAR},
    2: {"capabilities": None},
    3: {"cpu": ["sse4"]},
    4: {"cpu": ["sse4", "avx512"]},
    5: {"driver": "libvirt"},
    6: {"own": "one"},
    7: {"own": "one", "classes": {"fast": "two"}, "capabilities": ["LiveMigration"]},
    8: {"own": "three", "classes": {"fast": "two"}},
    9: {"labels": {"zone": "east"}},
    10: {"labels": {"zone": "east"}, "networks": ["office"]},
    11: {"labels": {"zone": "west"}, "networks": ["office"], "cpu": ["sse4"]},
}
# What machines may ask of a host.
EAST: dict[str, Any] = {"host_selector": {"zone": "east"}}
OFFICE: dict[str, Any] = {"needs": frozenset({Offer(OfferKind.NETWORK, "office")})}
ZONED = HostTerm(labels=(Requirement("zone", "Exists"),))
ANY_ZONE: dict[str, Any] = {"affinity": Affinity(hosts=(ZONED,))}
NOT_ASKED: dict[str, Any] = {}
NO_CLASSES: Mapping[str, str] = {}
NO_LABELS: Mapping[str, str] = {}
# Storage classes of disks with snapshots; the one without a name is the host's own.
FREE = Tied()
FIRST_DISK = Tied(within=frozenset({""}))
BOTH_DISKS = Tied(within=frozenset({"", "fast"}))


@dataclass
class Fleet:
    """Hosts as they told of themselves, and those who were woken."""

    woken: list[str] = field(default_factory=list)
    version: int = 0

    def __post_init__(self) -> None:
        self.ledger = Ledger(HOST_KIND)
        self.cache = Cache(HOSTS)
        self.prospects = Prospects(self.ledger, self.woken.append, soon=lambda call: call())
        self.ledger.follow_hosts(self.cache)

    def tell(
        self,
        name: str,
        capabilities: list[str] | None = ABLE,
        *,
        driver: str = "simulation",
        cpu: Sequence[str] = (),
        own: str = "",
        classes: Mapping[str, str] = NO_CLASSES,
        labels: Mapping[str, str] = NO_LABELS,
        networks: Sequence[str] = (),
        declared: Sequence[str] = (),
    ) -> None:
        """Have a host say what it can do; None is one that was not asked yet.

        ``own`` is what its own storage is known by, ``classes`` that of its storage classes, of
        which those are ``declared`` that its specification says it has.
        """
        body = self.body(name, capabilities, driver, cpu)
        body["spec"].setdefault(driver, {})["storageClasses"] = [{"name": it} for it in declared]
        rooms = [
            {"name": each, "allocatable": "1Gi", "storageID": place}
            for each, place in classes.items()
        ]
        seen = sorted({own, *classes.values()} - {""})
        body["spec"]["labels"] = dict(labels)
        body["status"]["networks"] = [{"name": each, "types": ["bridge"]} for each in networks]
        body["status"] |= {"storageIDs": seen, "ownStorageID": own, "storageClasses": rooms}
        self.cache.seen(body)

    def body(
        self,
        name: str,
        capabilities: list[str] | None,
        driver: str = "simulation",
        cpu: Sequence[str] = (),
    ) -> dict[str, Any]:
        self.version += 1
        body = host(name, driver=driver)
        meta = {"uid": name, "generation": 1, "resourceVersion": str(self.version)}
        body["metadata"] |= meta
        body["status"] = {} if capabilities is None else {"capabilities": capabilities}
        if cpu:
            body["status"]["cpu"] = {"guestModel": "Skylake", "guestFeatures": list(cpu)}
        return body

    def place(self, on: str) -> None:
        """Have a machine hold something of a host."""
        self.ledger.assume(f"vm-{on}", Held(on, SIZE))

    def obstacle(
        self,
        on: str,
        to: Tied = FREE,
        *,
        encrypted: bool = False,
        cpu: str = "",
        asks: Mapping[str, Any] = NOT_ASKED,
        uid: str = "",
    ) -> tuple[str, str]:
        """Return reason and message of what keeps a machine where it is; two empty ones if none."""
        machine = Machine(
            uid=uid or f"vm-{on}",
            namespace="n",
            name="m",
            wanted=SIZE,
            image="builtin://tiny",
            power=Power.ON,
            host=on,
            move_policy=MovePolicy(encrypted=encrypted),
            guest_cpu=cpu,
            **asks,
        )
        return self.prospects.obstacle(machine, on, to) or ("", "")


NONE = ("", "")


@pytest.fixture
def fleet() -> Fleet:
    return Fleet()


def test_a_host_that_is_alone_has_nowhere_to_send_machines(fleet: Fleet) -> None:
    """Until another one of its kind has been asked what it can do."""
    fleet.tell("a")
    assert fleet.obstacle("a") == ("NoOtherHost", "there is no other host with driver simulation")
    fleet.tell("far", driver="libvirt")
    assert fleet.obstacle("a")[0] == "NoOtherHost"
    fleet.tell("b", None)
    assert fleet.obstacle("a")[0] == "NoOtherHost"
    fleet.tell("b")
    assert fleet.obstacle("a") == NONE


def test_machines_that_are_not_moved_between_hosts_are_not_spoken_of(fleet: Fleet) -> None:
    """Their driver says whether they can move; and one whose host nobody declared says nothing."""
    fleet.tell("cluster", ["Console"])
    assert fleet.obstacle("cluster") == NONE
    assert fleet.obstacle("unheard-of") == NONE


def test_a_host_that_cannot_move_machines_is_no_prospect(fleet: Fleet) -> None:
    fleet.tell("a")
    fleet.tell("b", ["Console"])
    assert fleet.obstacle("a")[0] == "NoOtherHost"


def test_a_machine_can_go_where_its_cpu_is_and_not_where_it_is_not(fleet: Fleet) -> None:
    """More of a CPU takes over from less, and not the other way round."""
    fleet.tell("old", cpu=["sse4"])
    fleet.tell("new", cpu=["sse4", "avx512"])
    assert fleet.obstacle("old") == NONE
    reason, message = fleet.obstacle("new")
    assert reason == "NoOtherHost"
    assert message.startswith("no other host can give it the CPU that it has (Skylake)")
    assert "spec.libvirt.cpuModel" in message
    fleet.tell("newer", cpu=["sse4", "avx512", "amx"])
    assert fleet.obstacle("new") == NONE


def test_a_guest_that_came_from_a_lesser_cpu_can_go_back_to_it(fleet: Fleet) -> None:
    """What counts is the one that it was started with."""
    fleet.tell("old", cpu=["sse4"])
    fleet.tell("new", cpu=["sse4", "avx512"])
    started_on = fleet.ledger.declared["old"].cpu
    assert started_on is not None
    assert fleet.obstacle("new", cpu=started_on.key) == NONE
    assert fleet.obstacle("new")[0] == "NoOtherHost"


def test_a_host_that_others_have_no_way_to_is_no_prospect(fleet: Fleet) -> None:
    """Its own machines can leave it all the same."""
    fleet.tell("a")
    fleet.tell("hidden", ["LiveMigration"])
    reason, message = fleet.obstacle("a")
    assert reason == "NoOtherHost"
    assert "spec.libvirt.migration.uri" in message
    assert fleet.obstacle("hidden") == NONE


def test_snapshots_keep_a_machine_where_nobody_else_sees_its_disks(fleet: Fleet) -> None:
    """They are within them; who can tell nothing of storage is not accused."""
    fleet.tell("a", own="one")
    fleet.tell("b", own="two")
    fleet.place("a")
    assert fleet.obstacle("a") == NONE
    assert fleet.obstacle("a", FIRST_DISK)[0] == "HasSnapshots"
    fleet.tell("b", own="two", classes={"fast": "one"})
    assert fleet.obstacle("a", FIRST_DISK) == NONE
    assert fleet.woken == ["vm-a"]
    fleet.tell("c")
    assert fleet.obstacle("c", BOTH_DISKS) == NONE
    fleet.cache.gone(fleet.body("b", ABLE))
    assert fleet.obstacle("a", FIRST_DISK)[0] == "HasSnapshots"


def test_a_class_that_others_see_does_not_free_a_first_disk_that_they_do_not(fleet: Fleet) -> None:
    """So are the hosts of ``novacron up --hosts 3``: a shared class, and a pool of each one's own.

    Whose first disk all see, and a volume nobody else, stays for that volume.
    """
    for name in ("a", "b", "c"):
        fleet.tell(name, own=f"own-{name}", classes={"fast": "shared"})
    assert fleet.obstacle("a", FIRST_DISK)[0] == "HasSnapshots"
    assert fleet.obstacle("a", BOTH_DISKS)[0] == "HasSnapshots"
    for name in ("a", "b"):
        fleet.tell(name, own="shared", classes={"fast": f"fast-{name}"})
        fleet.place(name)
    assert fleet.obstacle("a", FIRST_DISK) == NONE
    assert fleet.obstacle("a", BOTH_DISKS)[0] == "HasSnapshots"
    fleet.woken.clear()
    fleet.tell("b", own="shared", classes={"fast": "fast-a"})
    assert fleet.woken == ["vm-a"]
    assert fleet.obstacle("a", BOTH_DISKS) == NONE


def test_snapshots_are_within_the_first_disk_and_all_volumes_that_are_plugged_in() -> None:
    """Of one that was taken off the machine nothing moves, so it binds nobody."""
    volumes = (
        SeenVolume("data", 16, Attachment.ATTACHED, "m.data", "fast"),
        SeenVolume("logs", 16, Attachment.GROWING, "m.logs"),
        SeenVolume("old", 16, Attachment.DETACHED, "m.old", "slow"),
    )
    seen = Observed("uid", "m", Power.ON, SIZE, snapshots=1, volumes=volumes)
    assert ties_of(seen) == BOTH_DISKS
    assert ties_of(replace(seen, snapshots=0)) == FREE
    assert ties_of(None) == FREE


@pytest.mark.parametrize("access", sorted(COMMON))
def test_a_volume_that_others_may_have_keeps_a_machine_where_nobody_else_sees_it(
    fleet: Fleet, access: Access
) -> None:
    """A copy would be another volume."""
    volumes = (
        SeenVolume("data", 16, Attachment.ATTACHED, "m.data", "fast", access=access),
        SeenVolume("logs", 16, Attachment.ATTACHED, "m.logs", access=Access.ONCE),
    )
    tied = ties_of(Observed("uid", "m", Power.ON, SIZE, volumes=volumes))
    assert tied == Tied(common=frozenset({"fast"}))
    for name in ("a", "b"):
        fleet.tell(name, own=f"own-{name}", classes={"fast": f"fast-{name}"})
        fleet.place(name)
    reason, message = fleet.obstacle("a", tied)
    assert reason == "DisksOutOfReach"
    assert "have hosts see one storage" in message
    fleet.tell("b", own="own-b", classes={"fast": "fast-a"})
    assert fleet.obstacle("a", tied) == NONE
    assert fleet.woken == ["vm-a"]


def test_a_volume_that_awaits_a_restart_keeps_a_guest_where_nobody_else_sees_it(
    fleet: Fleet,
) -> None:
    """The guest does not have it, so libvirt would not copy it, and the machine would lose it."""
    volumes = (
        SeenVolume("data", 16, Attachment.AWAITS_RESTART, "m.data", "fast"),
        SeenVolume("logs", 16, Attachment.ATTACHED, "m.logs"),
    )
    awaiting = ties_of(Observed("uid", "m", Power.ON, SIZE, volumes=volumes))
    assert awaiting == Tied(unplugged=frozenset({"fast"}))
    for name in ("a", "b"):
        fleet.tell(name, own=f"own-{name}", classes={"fast": f"fast-{name}"})
        fleet.place(name)
    assert fleet.obstacle("a") == NONE
    reason, message = fleet.obstacle("a", awaiting)
    assert reason == "VolumesAwaitRestart"
    assert "restart it first" in message
    fleet.tell("b", own="own-b", classes={"fast": "fast-a"})
    assert fleet.obstacle("a", awaiting) == NONE
    assert fleet.woken == ["vm-a"]


@pytest.mark.parametrize("asks", [EAST, OFFICE, EAST | OFFICE, ANY_ZONE])
def test_a_machine_can_go_only_where_there_is_what_it_asks_for(
    fleet: Fleet, asks: Mapping[str, Any]
) -> None:
    """Labels and networks are the owner's to give to another host, and are there or not for long.

    Its own host counts for nothing, whether it has them (still) or not.
    """
    fleet.tell("a", labels={"zone": "east"}, networks=["office"])
    fleet.tell("b")
    fleet.place("a")
    assert fleet.obstacle("a") == NONE
    reason, message = fleet.obstacle("a", asks=asks)
    assert reason == "NoOtherHost"
    assert "novacron explain vm" in message
    fleet.tell("a", labels={})
    assert fleet.obstacle("a", asks=asks)[0] == "NoOtherHost"
    assert fleet.woken == []
    fleet.tell("b", labels={"zone": "east"}, networks=["office"])
    assert fleet.woken == ["vm-a"]
    assert fleet.obstacle("a", asks=asks) == NONE
    fleet.tell("b", ["Console"], labels={"zone": "east"}, networks=["office"])
    assert fleet.obstacle("a", asks=asks)[0] == "NoOtherHost"


def test_a_storage_class_that_only_its_own_host_has_keeps_a_machine_there(fleet: Fleet) -> None:
    """Classes are said in the specification of hosts, and so is which labels their nodes have."""
    asks = {"needs": frozenset({Offer(OfferKind.STORAGE, "fast")})}
    fleet.tell("a")
    fleet.tell("b")
    assert fleet.obstacle("a", asks=asks)[0] == "NoOtherHost"
    fleet.tell("b", declared=["fast"])
    assert fleet.obstacle("a", asks=asks) == NONE
    named = {"affinity": Affinity(hosts=(HostTerm(names=(Requirement("", "In", ("a",)),)),))}
    assert fleet.obstacle("a", asks=named)[0] == "NoOtherHost"


def test_what_a_machine_asked_for_before_is_forgotten(fleet: Fleet) -> None:
    """Who asks for something else again and again fills no memory, and is still looked at."""
    fleet.tell("a")
    fleet.tell("b")
    fleet.place("a")
    for number in range(3000):
        fleet.obstacle("a", asks={"host_selector": {"wish": str(number)}})
    assert fleet.prospects.remembered == 1
    fleet.tell("b", labels={"wish": "1"})
    assert fleet.woken == []
    fleet.tell("b", labels={"wish": "2999"})
    assert fleet.woken == ["vm-a"]
    fleet.prospects.gone("vm-a")
    assert fleet.prospects.remembered == 0


def test_machines_that_are_alike_are_each_woken_once(fleet: Fleet) -> None:
    """And others of the same host not at all, though there may be hundreds."""
    fleet.tell("a")
    fleet.tell("b")
    for number in range(9):
        fleet.ledger.assume(f"vm-a{number}", Held("a", SIZE))
        fleet.obstacle("a", asks=EAST if number % 3 else NOT_ASKED, uid=f"vm-a{number}")
    fleet.tell("b", labels={"zone": "east"})
    assert sorted(fleet.woken) == [f"vm-a{number}" for number in range(9) if number % 3]


def test_those_are_told_together_whom_many_hosts_concern() -> None:
    """A release may change what all hosts can do, one after the other."""
    later: list[Callable[[], None]] = []
    fleet = Fleet()
    fleet.prospects.soon = later.append
    for name in "abcd":
        fleet.tell(name)
        fleet.place(name)
    assert fleet.obstacle("a", asks=EAST)[0] == "NoOtherHost"
    for name in "bcd":
        fleet.tell(name, labels={"zone": "east"})
    assert fleet.obstacle("a", asks=EAST) == NONE, "who asks meanwhile is told how it is"
    assert fleet.woken == []
    (tell,) = later
    tell()
    assert fleet.woken == ["vm-a"]
    fleet.tell("a", labels={"zone": "west"})
    assert len(later) == 2


@pytest.mark.parametrize("known", [True, False])
def test_who_was_told_of_a_host_that_has_changed_back_since_is_looked_at_again(
    *, known: bool
) -> None:
    """Others that are alike heard of neither, and it would be said of that one machine for long."""
    later: list[Callable[[], None]] = []
    fleet = Fleet()
    fleet.prospects.soon = later.append
    for name in ("a", "b"):
        fleet.tell(name)
    for uid in ("vm-early", "vm-other"):
        fleet.ledger.assume(uid, Held("a", SIZE))
    asking = ["vm-early", "vm-other"] if known else ["vm-other"]
    assert {fleet.obstacle("a", asks=EAST, uid=uid)[0] for uid in asking} == {"NoOtherHost"}
    later.pop()()
    fleet.tell("b", labels={"zone": "east"})
    assert fleet.obstacle("a", asks=EAST, uid="vm-early") == NONE
    fleet.tell("b")
    later.pop()()
    assert fleet.woken == ["vm-early"]
    assert fleet.obstacle("a", asks=EAST, uid="vm-early")[0] == "NoOtherHost"
    fleet.tell("b", labels={"zone": "west"})
    later.pop()()
    assert fleet.woken == ["vm-early"], "once is enough"


def test_a_host_with_certificates_that_has_not_what_is_asked_for_is_no_lack_of_certificates(
    fleet: Fleet,
) -> None:
    """Who asks for something else in the same breath as for a move may go there."""
    fleet.tell("a", labels={"zone": "east"})
    fleet.tell("b", ONLY_CLEAR, labels={"zone": "east"})
    assert fleet.obstacle("a", encrypted=True, asks=EAST)[0] == "NoCertificates"
    fleet.tell("c", labels={"zone": "west"})
    reason, message = fleet.obstacle("a", encrypted=True, asks=EAST)
    assert reason == "NoOtherHost"
    assert "no other host that has what it asks for has certificates" in message


def test_who_sees_a_disk_has_to_be_able_to_take_the_machine(fleet: Fleet) -> None:
    """One that sees it and has not what is asked for is of no use, nor is one that lets nobody in.

    Two disks are to be seen by one host.
    """
    fleet.tell("a", own="one", classes={"fast": "two"}, labels={"zone": "east"})
    fleet.tell("b", own="one", labels={"zone": "east"})
    fleet.tell("c", own="three", classes={"fast": "two"}, labels={"zone": "east"})
    fleet.tell("d", own="one", classes={"fast": "two"})
    fleet.tell("e", ["LiveMigration"], own="one", classes={"fast": "two"}, labels={"zone": "east"})
    assert fleet.obstacle("a", FIRST_DISK, asks=EAST) == NONE
    assert fleet.obstacle("a", BOTH_DISKS) == NONE
    assert fleet.obstacle("a", BOTH_DISKS, asks=EAST)[0] == "HasSnapshots"


def test_only_machines_that_are_to_travel_encrypted_ask_for_certificates(fleet: Fleet) -> None:
    """All others move as ever."""
    fleet.tell("a", ONLY_CLEAR)
    fleet.tell("b", ONLY_CLEAR)
    assert fleet.obstacle("a") == NONE
    reason, message = fleet.obstacle("a", encrypted=True)
    assert reason == "NoCertificates"
    assert "host a has no certificates" in message
    assert "spec.libvirt.migration.tls" in message
    assert "spec.migrationPolicy.encrypted" in message


def test_certificates_on_one_host_alone_are_of_no_use(fleet: Fleet) -> None:
    """There is nowhere to go. Where another one has some and another CPU, it could go stopped."""
    fleet.tell("a", cpu=["sse4"])
    fleet.tell("b", ONLY_CLEAR, cpu=["sse4"])
    assert "no other host has certificates" in fleet.obstacle("a", encrypted=True)[1]
    fleet.tell("c", cpu=["neon"])
    reason, message = fleet.obstacle("a", encrypted=True)
    assert reason == "NoOtherHost"
    assert message.startswith("no other host that has certificates can give it the CPU")
    fleet.tell("d", cpu=["sse4"])
    assert fleet.obstacle("a", encrypted=True) == NONE


def test_a_host_that_was_not_asked_yet_is_not_accused(fleet: Fleet) -> None:
    """What nobody knows is no obstacle: the move itself is refused where it must be."""
    fleet.tell("a", None)
    fleet.tell("b", None)
    assert fleet.obstacle("a", encrypted=True) == NONE


def test_those_are_looked_at_again_for_whom_the_answer_changes_and_nobody_else(
    fleet: Fleet,
) -> None:
    """A fleet has thousands of machines, and hosts tell something new every few seconds."""
    for name in ("a", "b", "c"):
        fleet.tell(name, ONLY_CLEAR)
        fleet.place(name)
    for name in ("a", "b"):
        fleet.obstacle(name, encrypted=True)
    fleet.obstacle("c")
    fleet.tell("a", [*ONLY_CLEAR, "Console"])
    assert fleet.woken == []
    fleet.tell("a")
    assert fleet.woken == ["vm-a"]  # the others' own hosts still have none
    fleet.woken.clear()
    fleet.tell("b")
    assert sorted(fleet.woken) == ["vm-a", "vm-b"]
    assert fleet.obstacle("a", encrypted=True) == NONE


def test_a_host_that_goes_was_the_last_prospect_of_some(fleet: Fleet) -> None:
    """Those who could have gone there are told, and again when it comes back."""
    fleet.tell("a")
    fleet.tell("b")
    fleet.tell("c", ONLY_CLEAR)
    fleet.place("a")
    assert fleet.obstacle("a", encrypted=True) == NONE
    fleet.cache.gone(fleet.body("b", ABLE))
    assert fleet.woken == ["vm-a"]
    assert "no other host has" in fleet.obstacle("a", encrypted=True)[1]
    fleet.cache.gone(fleet.body("c", ONLY_CLEAR))
    assert fleet.obstacle("a", encrypted=True)[0] == "NoOtherHost"
    fleet.woken.clear()
    fleet.tell("b")
    assert fleet.woken == ["vm-a"]


@settings(deadline=None)  # a busy machine must not fail a property
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from([*KINDS, None])), max_size=30))
def test_what_is_told_is_always_what_a_fresh_look_at_the_hosts_says(
    story: list[tuple[str, int | None]],
) -> None:
    """However hosts come, change and go; and whoever is told otherwise than before is woken."""
    fleet, hosts = Fleet(), dict.fromkeys("abcd", 0)
    _declare(fleet, hosts)
    before = _answers(fleet, hosts)
    for name, kind in story:
        if kind is not None:
            hosts[name] = kind
            fleet.tell(name, **KINDS[kind])
        elif hosts.pop(name, None) is not None:
            fleet.cache.gone(fleet.body(name, ABLE))
        now, fresh = _answers(fleet, hosts), Fleet()
        _declare(fresh, hosts)
        assert now == _answers(fresh, hosts)
        assert {uid for uid, said in now.items() if before.get(uid, said) != said} <= set(
            fleet.woken
        )
        before = now
        fleet.woken.clear()


def _declare(fleet: Fleet, hosts: Mapping[str, int]) -> None:
    for name, kind in hosts.items():
        fleet.place(name)
        fleet.tell(name, **KINDS[kind])


def _answers(fleet: Fleet, hosts: Iterable[str]) -> dict[str, tuple[str, str]]:
    ties = (FREE, FIRST_DISK, BOTH_DISKS, Tied(unplugged=frozenset({"fast"})))
    asked: list[dict[str, Any]] = [
        {"encrypted": True},
        *({"to": tie} for tie in ties),
        *({"asks": asks} for asks in (EAST, OFFICE, EAST | OFFICE, ANY_ZONE)),
        {"to": FIRST_DISK, "asks": EAST},
    ]
    found: dict[str, tuple[str, str]] = {}
    for on in hosts:
        for number, each in enumerate(asked):
            uid = f"vm-{on}-{number}"
            fleet.ledger.assume(uid, Held(on, SIZE))
            found[uid] = fleet.obstacle(on, uid=uid, **each)
    return found
