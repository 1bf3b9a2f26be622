"""Which volumes are told of as kept, and by whom, when several hosts see the same ones."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from machines import host, virtual_machine
from novacron.app.registry import HOST_KIND
from novacron.controllers.kept import VolumeHolders, told_once
from novacron.controllers.ledger import Ledger
from novacron.core.host import HostFacts
from novacron.core.machine import Machine, Power, Resources
from novacron.core.volume import Hold, KeptVolume, volume_id
from novacron.families.novacron.translate import VirtualMachineKind
from novacron.runtime.cache import Cache
from novacron.runtime.resource import Resource

HOSTS = Resource("novacron.io", "v1alpha1", "hosts", "Host", namespaced=False)
MACHINES = Resource("novacron.io", "v1alpha1", "virtualmachines", "VirtualMachine")


@dataclass
class Fleet:
    """Hosts that say what they see, and machines."""

    version: int = 0
    holders: VolumeHolders = field(default_factory=VolumeHolders)

    def __post_init__(self) -> None:
        self.ledger = Ledger(HOST_KIND)
        self.hosts, self.machines = Cache(HOSTS), Cache(MACHINES)
        self.ledger.follow_hosts(self.hosts)
        self.holders.follow(self.machines, VirtualMachineKind())

    def marked(self, body: dict[str, Any], uid: str) -> dict[str, Any]:
        self.version += 1
        meta = {"uid": uid, "generation": 1, "resourceVersion": str(self.version)}
        body["metadata"] |= meta
        return body

    def sees(self, name: str, *storages: str) -> None:
        """Have a host say which places it sees."""
        body = self.marked(host(name), name)
        self.hosts.seen({**body, "status": {"storageIDs": list(storages)}})

    def told(self, name: str, *kept: KeptVolume) -> list[str]:
        """Return which of the volumes that a host found it is to tell of."""
        facts = HostFacts(name, Resources(1, 1, 1), kept_volumes=kept)
        return [each.id for each in told_once(facts, self.holders, self.ledger).kept_volumes]


def kept(volume: str, storage: str = "") -> KeptVolume:
    return KeptVolume("n", volume, 64, storage=storage)


@pytest.fixture
def fleet() -> Fleet:
    return Fleet()


def test_what_several_hosts_see_the_first_of_them_tells(fleet: Fleet) -> None:
    """And what only one sees, that one."""
    for name in ("b", "a", "c"):
        fleet.sees(name, *(("nfs",) if name != "c" else ("other",)))
    both = (kept("x.data-1", "nfs"), kept("y.data-2"))
    assert fleet.told("a", *both) == ["x.data-1", "y.data-2"]
    assert fleet.told("b", *both) == ["y.data-2"]
    assert fleet.told("c", kept("z.data-3", "other")) == ["z.data-3"]


def test_the_next_host_tells_when_the_first_is_gone(fleet: Fleet) -> None:
    """Else nobody would know of it any more."""
    fleet.sees("a", "nfs")
    fleet.sees("b", "nfs")
    assert fleet.told("b", kept("x.data-1", "nfs")) == []
    fleet.hosts.gone(fleet.marked(host("a"), "a"))
    assert fleet.told("b", kept("x.data-1", "nfs")) == ["x.data-1"]


@pytest.mark.parametrize("how", ["wanted", "existing", "had"])
def test_what_a_machine_has_had_or_asks_for_is_not_kept(fleet: Fleet, how: str) -> None:
    """Wherever that machine is: a host knows only its own."""
    fleet.sees("a", "nfs")
    own = volume_id("db", "data", "uid-db")
    one = own if how != "existing" else "old.data-12345678"
    wanted = {"name": "data", "size": "64Mi"}
    if how == "existing":
        wanted["existing"] = one
    body = fleet.marked(
        virtual_machine("db", "n", volumes=[] if how == "had" else [wanted]), "uid-db"
    )
    if how == "had":
        body["status"] = {"volumes": [{"id": one, "name": "data", "size": "64Mi"}]}
    fleet.machines.seen(body)
    assert fleet.told("a", kept(one, "nfs")) == []
    fleet.machines.gone(fleet.marked(dict(body), "uid-db"))
    assert fleet.told("a", kept(one, "nfs")) == [one]


def test_two_machines_share_a_volume_until_the_last_is_gone(fleet: Fleet) -> None:
    """ReadWriteMany: one that goes does not take it from the other."""
    fleet.sees("a", "nfs")
    wanted = [{"name": "data", "size": "64Mi", "existing": "old.data-12345678"}]
    bodies = [
        fleet.marked(virtual_machine(name, "n", volumes=wanted), f"uid-{name}")
        for name in ("one", "two")
    ]
    for body in bodies:
        fleet.machines.seen(body)
    fleet.machines.gone(fleet.marked(bodies[0], "uid-one"))
    assert fleet.told("a", kept("old.data-12345678", "nfs")) == []
    fleet.machines.gone(fleet.marked(bodies[1], "uid-two"))
    assert fleet.told("a", kept("old.data-12345678", "nfs")) == ["old.data-12345678"]


@pytest.mark.parametrize(
    ("wanted", "state", "hold"),
    [
        (True, None, Hold.ASKS),
        (True, "Attached", Hold.WRITES),
        (True, "Detached", Hold.ASKS),
        (False, "Detaching", Hold.WRITES),
        (False, "Detached", Hold.HAD),
        ("ReadOnlyMany", "Attached", Hold.READS),
    ],
)
def test_how_much_another_machine_holds_a_volume_is_told(
    fleet: Fleet, wanted: bool | str, state: str | None, hold: Hold
) -> None:
    """By what it asks for and by what its status says; never of the machine that asks."""
    one = "old.data-12345678"
    mode = {"accessMode": wanted} if isinstance(wanted, str) else {}
    volume = {"name": "data", "size": "64Mi", "existing": one, **mode}
    body = fleet.marked(virtual_machine("db", "n", volumes=[volume] if wanted else []), "uid-db")
    if state:
        listed = {"id": one, "name": "data", "size": "64Mi", "state": state}
        body["status"] = {"volumes": [listed]}
    fleet.machines.seen(body)
    machines = {
        name: Machine(name, "n", name, Resources(1, 1, 1), "", Power.ON) for name in ("db", "web")
    }
    for least in Hold:
        found = fleet.holders.other(MACHINES, machines["web"], one, least)
        assert found == ("db" if hold >= least else None)
        assert fleet.holders.other(MACHINES, machines["db"], one, least) is None
    fleet.machines.gone(fleet.marked(dict(body), "uid-db"))
    assert fleet.holders.other(MACHINES, machines["web"], one, Hold.HAD) is None
