"""The same with real guests that count aloud while two real hosts hand them over."""

from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import libvirt
import pytest

from api import Api
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
DIGITS = 4
MIB = 1024 * 1024
# A boot sector that says "!" once, and then counts what wakes it: the clock, 18 times a second.
# Every 16th time it says how far it is, with a letter for each four bits.
COUNTER = (
    bytes([0xBA, 0xF8, 0x03])  # mov dx, 0x3f8: the serial port
    + bytes([0x31, 0xDB])  # xor bx, bx
    + bytes([0xB0, ord("!"), 0xEE, 0xB0, ord("\n"), 0xEE])  # say "!\n"
    + bytes([0xFB, 0xF4, 0x43])  # sleep: sti; hlt; inc bx
    + bytes([0xF6, 0xC3, 0x0F, 0x75, 0xF8])  # test bl, 15; jnz sleep
    + bytes([0xB9, 0x04, 0x00])  # mov cx, 4
    + bytes([0xC1, 0xC3, 0x04, 0x88, 0xD8])  # digit: rol bx, 4; mov al, bl
    + bytes([0x24, 0x0F, 0x04, ord("A"), 0xEE])  # and al, 15; add al, "A"; out dx, al
    + bytes([0xE2, 0xF4])  # loop digit
    + bytes([0xB0, ord("\n"), 0xEE, 0xEB, 0xE4])  # say "\n"; jmp sleep
)
COUNTS = (COUNTER.ljust(510, b"\0") + b"\x55\xaa").ljust(MIB, b"\0")


def counts(said: str) -> list[int]:
    """Return how far a guest said that it is, in whole lines."""
    return [
        int("".join(f"{ord(letter) - ord('A'):x}" for letter in line), 16)
        for line in said[: said.rfind("\n") + 1].split()
        if len(line) == DIGITS
    ]


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
            self._check_kept(pools, objects)
            early = {uid: said(pools[home], uid) for uid, home in homes.items()}
            for uid, home in homes.items():
                begun_here = self.shared or home == 0
                self._check_counting(pools[home], uid, early[uid], begun_here=begun_here)

    def _check_kept(self, pools: list[libvirt.virStoragePool], objects: dict[str, Object]) -> None:
        """See that volumes which were to stay are where their machine was, and nowhere else."""
        here, there = ({each for each in pool.listVolumes() if is_data(each)} for pool in pools)
        assert self.shared or not there
        check_kept({name.removeprefix("volume-") for name in here}, objects, self.begun)

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


def number_of(name: str) -> int:
    """Return which of the hosts has a name."""
    return int(name.endswith("-second"))


def said(pool: libvirt.virStoragePool, uid: str) -> str:
    """Return what a guest said on its console since it is on this host."""
    return read_volume(pool.storageVolLookupByName(console_log(uid))).decode()


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
        stage = Theatre(cluster, api, tmp_path, scenario, name, ground)
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
