"""The same with real guests that count aloud while two real hosts hand them over."""

from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import libvirt
import pytest

from api import Api
from crash.counting_guest import COUNTS, counts, is_written, write_on_volumes
from crash.scenarios import REAL_MOVES, Scenario
from crash.theatre import NAME, Theatre, check_kept
from fleet import own_fleet
from image_server import ImageServer, image_server
from libvirt_daemon import OF_ALL
from machines import host, virtual_machine
from moving_guest import connected
from novacron.drivers.libvirt.domain import console_log, console_past
from novacron.drivers.libvirt.pool import read_volume
from novacron.localcluster.controlplane import ControlPlane
from novacron.localcluster.hypervisor import Fleet
from novacron.localcluster.hypervisor.fleet import SHARED_POOL
from operators import eventually
from rights import ROOT

Object = dict[str, Any]

pytestmark = pytest.mark.skipif(not ROOT, reason="hosts of their own need root")

OVERCOMMIT = {"cpu": 100, "memory": 10, "disk": 10}


@dataclass(frozen=True, slots=True)
class Hosts:
    """Two libvirt hosts with guests that count, and their disks in one place or in two."""

    fleet: Fleet
    images: ImageServer
    pool: str
    stopped: bool
    snapshots: bool
    flags: tuple[str, ...] = ("--shutdown-grace=2s",)
    beneath: str = "libvirt"
    begun: dict[str, Scenario] = field(default_factory=dict)
    seen: dict[str, int] = field(default_factory=dict)

    def host(self, name: str, _: Scenario) -> Object:
        number = number_of(name)
        hypervisor = self.fleet.hosts[number]
        body = host(name, endpoint=hypervisor.uri, overcommit=OVERCOMMIT)
        migration = {"uri": self.fleet.peer_uri(number + 1), "tls": True}
        settings = {"storagePool": self.pool, "network": hypervisor.network}
        body["spec"] |= {"driver": "libvirt", "libvirt": settings | {"migration": migration}}
        del body["spec"]["simulation"]
        return body

    def machine(self, namespace: str, host: str, scenario: Scenario) -> Object:
        self.begun[namespace] = scenario
        image = {"source": self.images.add("counts.raw", COUNTS)}
        size = {"memory": "512Mi", "disk": "600Mi" if "large" in scenario.name else "64Mi"}
        volumes = list(scenario.volumes)
        return virtual_machine(NAME, namespace, on=host, image=image, volumes=volumes, **size)

    def check_nothing_leaked(self, objects: dict[str, Object]) -> None:
        """Each machine has one guest, on its host alone, that was never started anew."""
        homes = {
            obj["metadata"]["uid"]: number_of(obj["status"]["nodeName"]) for obj in objects.values()
        }
        with connected(*self.fleet.hosts) as connections:
            for number, connection in enumerate(connections):
                here = {uid for uid, home in homes.items() if home == number}
                domains = connection.listAllDomains()
                assert {each.UUIDString() for each in domains} == here
                assert all(each.state()[0] == libvirt.VIR_DOMAIN_RUNNING for each in domains)
                self._check_volumes(connection, homes.keys() if self.shared else here)
            pools = [each.storagePoolLookupByName(self.pool) for each in connections]
            self._check_data(pools, objects)
            early = {uid: said(pools[home], uid) for uid, home in homes.items()}
            for uid, home in homes.items():
                begun_here = self.shared or home == 0
                self._check_counting(pools[home], uid, early[uid], begun_here=begun_here)
            self.check_written(objects)

    def _check_data(self, pools: list[libvirt.virStoragePool], objects: dict[str, Object]) -> None:
        """See that volumes are where their machine is or was, and nowhere else."""
        self.seen.update(
            {name: number_of(obj["status"]["nodeName"]) for name, obj in objects.items()}
        )
        here, there = ({each for each in pool.listVolumes() if is_data(each)} for pool in pools)
        if self.shared:
            assert here == there
        else:
            assert {self.seen.get(namespace_of(each), 0) for each in here} <= {0}
            assert {self.seen[namespace_of(each)] for each in there} <= {1}
        had = set(volumes_of(objects))
        assert had <= here | there
        left = {name.removeprefix("volume-") for name in (here | there) - had}
        check_kept(left, objects, self.begun)

    def write(self, objects: dict[str, Object]) -> None:
        """Have something on all volumes of machines."""
        with connected(self.fleet.hosts[0]) as (here,):
            for obj in objects.values():
                write_on_volumes(here.lookupByUUIDString(obj["metadata"]["uid"]))
        self.check_written(objects)

    def check_written(self, objects: dict[str, Object]) -> None:
        """See that it is there where their machines are."""
        for volume, home in volumes_of(objects).items():
            own = self.fleet.hosts[home].directory / "lib/libvirt" / self.pool
            directory = self.fleet.directory / "shared" if self.shared else own
            assert is_written(directory / volume), volume

    def _check_counting(
        self, pool: libvirt.virStoragePool, uid: str, early: str, *, begun_here: bool
    ) -> None:
        """See that a guest runs on: whoever begins anew says so."""
        eventually(
            lambda: len(counts(said(pool, uid))) > len(counts(early)),
            lambda: f"{uid} counts on after {early}",
        )
        told = said(pool, uid)
        if self.stopped:  # it counts anew from there
            told = told.rpartition("!")[2]
            begun_here = False
        assert counts(told) == sorted(set(counts(told))), f"{uid} said {told}"
        assert told.count("!") == begun_here, f"{uid} said {told}"
        if not begun_here and not self.stopped:
            past = read_volume(pool.storageVolLookupByName(console_past(uid))).decode()
            assert past.count("!") == 1, f"{uid} said {past!r} where it was"

    @property
    def shared(self) -> bool:
        """Say whether both hosts see one directory."""
        return self.pool == SHARED_POOL

    def _check_volumes(self, connection: libvirt.virConnect, uids: Set[str]) -> None:
        pool = connection.storagePoolLookupByName(self.pool)
        pool.refresh()
        ours = (name for name in pool.listVolumes() if not name.startswith(OF_ALL))
        names = {name for name in ours if not is_data(name)}
        # A first disk, a seed and what was said here and before, and nothing else; but with
        # snapshots their book, and what a disk that was copied is on top of.
        kinds = sorted(
            name[37:].partition("-")[0] for name in names - {console_past(uid) for uid in uids}
        )
        each = ["root.qcow2", "seed", "console.log", *(["snapshots"] * self.snapshots)]
        each += ["base"] * (self.snapshots and not self.shared)
        assert kinds == sorted(each * len(uids)), names
        assert {name[:36] for name in names} == uids


def is_data(volume: str) -> bool:
    """Say whether a volume has data that may outlive its machine."""
    return volume.startswith("volume-")


def namespace_of(volume: str) -> str:
    """Return whose namespace a volume with data is of."""
    return volume.removeprefix("volume-").partition(".")[0]


def volumes_of(objects: dict[str, Object]) -> dict[str, int]:
    """Return the file of each volume that machines have, and on which host that is to be."""
    return {
        f"volume-{namespace}.{each['id']}.qcow2": number_of(obj["status"]["nodeName"])
        for namespace, obj in objects.items()
        for each in obj["status"].get("volumes") or ()
    }


def number_of(name: str) -> int:
    """Return which of the hosts has a name."""
    return int(name.endswith("-second"))


def said(pool: libvirt.virStoragePool, uid: str) -> str:
    """Return what a guest said on its console since it is on this host."""
    return read_volume(pool.storageVolLookupByName(console_log(uid))).decode()


@dataclass(slots=True)
class DataTheatre(Theatre):
    """Where machines have something on their volumes before anything happens to them."""

    ground: Hosts

    def add_machines(self, count: int) -> list[str]:
        """Bring machines to where the scenario begins."""
        new = Theatre.add_machines(self, count)
        objects = self.objects()
        self.ground.write({name: objects[name] for name in new})
        return new


@pytest.fixture
def theatre(
    request: pytest.FixtureRequest, cluster: ControlPlane, api: Api, tmp_path: Path
) -> Iterator[Theatre]:
    """One scenario on two hosts of its own."""
    scenario = request.param
    name = "real-" + scenario.name.replace(" ", "-")
    with own_fleet() as fleet, image_server() as images:
        pool = "novacron" if "disks" in scenario.name else SHARED_POOL
        ground = Hosts(
            fleet,
            images,
            pool,
            stopped="stop" in scenario.name,
            snapshots=bool(scenario.snapshots_before),
        )
        stage = DataTheatre(cluster, api, tmp_path, scenario, name, ground)
        stage.prepare_host()
        yield stage
        stage.clear()
        ground.check_nothing_leaked({})


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "theatre", [pytest.param(each, id=each.name) for each in REAL_MOVES], indirect=True
)
def test_killed_at_any_write_of_a_move_one_guest_arrives_that_never_stopped_counting(
    theatre: Theatre,
) -> None:
    """Wherever the process dies: the two hosts go on by themselves, and the next one tidies up."""
    theatre.play_all()
