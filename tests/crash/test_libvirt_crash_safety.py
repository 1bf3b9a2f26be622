"""The same with real domains and disks, and with every single change that libvirt is asked for."""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import libvirt
import pytest

from api import Api
from crash.scenarios import REAL_SCENARIOS, Scenario, snapshots
from crash.theatre import NAME, Theatre, check_kept
from e2e.libvirt.conftest import DEAF
from guest_images import directory_with_tiny
from image_server import ImageServer, image_server
from inside_guest import file_systems
from libvirt_daemon import OF_ALL, LibvirtDaemon
from machines import host, virtual_machine
from novacron.drivers.libvirt.shelf import Shelf, key_of
from novacron.localcluster.controlplane import ControlPlane

Object = dict[str, Any]

OVERCOMMIT = {"cpu": 100, "memory": 10, "disk": 10}
# One with few writes is played every day.
EVERYDAY = "start"


@dataclass(frozen=True, slots=True)
class Real:
    """A libvirt daemon with guests that do nothing, or have an agent and count on."""

    daemon: LibvirtDaemon
    images: ImageServer
    built_in: Path
    beneath: str = "libvirt"
    begun: dict[str, Scenario] = field(default_factory=dict)

    @property
    def flags(self) -> tuple[str, ...]:
        return ("--shutdown-grace=2s", f"--images-directory={self.built_in}")

    def host(self, name: str, _: Scenario) -> Object:
        body = host(name, endpoint=self.daemon.uri, overcommit=OVERCOMMIT)
        body["spec"] = {**body["spec"], "driver": "libvirt"}
        del body["spec"]["simulation"]
        return body

    def machine(self, namespace: str, host: str, scenario: Scenario) -> Object:
        self.begun[namespace] = scenario
        own = "new image" in scenario.name
        content = DEAF + namespace.encode() if own else DEAF
        if "convert" in scenario.name:
            content = self.foreign(content)
        source = self.images.add(f"{namespace if own else 'deaf'}.raw", content)
        return virtual_machine(
            NAME,
            namespace,
            # Of those with snapshots there are more than the host has room for with two.
            cpu=1 if scenario.snapshots_before or scenario.with_agent else 2,
            memory="512Mi",
            disk="256Mi",
            running=scenario.running_before,
            on=host,
            volumes=list(scenario.volumes),
            **{"image": {"source": source}, **scenario.template},
        )

    def foreign(self, content: bytes) -> bytes:
        """Return a disk in another hypervisor's format."""
        disk, made = self.daemon.directory / "disk.raw", self.daemon.directory / "disk.vmdk"
        disk.write_bytes(content.ljust(2 * len(DEAF), b"\0"))
        subprocess.run(["qemu-img", "convert", "-O", "vmdk", disk, made], check=True)
        return made.read_bytes()

    def check_nothing_leaked(self, objects: dict[str, Object]) -> None:
        connection = libvirt.open(self.daemon.uri)
        uids = {obj["metadata"]["uid"] for obj in objects.values()}
        assert {domain.UUIDString() for domain in connection.listAllDomains()} == uids
        for obj in objects.values():
            domain = connection.lookupByUUIDString(obj["metadata"]["uid"])
            assert set(domain.snapshotListNames()) == snapshots(obj)
            if self.begun[obj["metadata"]["namespace"]].with_agent:
                assert file_systems(domain) == "thawed"
        pool = connection.storagePoolLookupByName("novacron")
        pool.refresh()
        names = [name for name in pool.listVolumes() if not name.startswith(OF_ALL)]
        data = {name for name in names if name.startswith("volume-")}
        books = sum(bool(snapshots(obj)) for obj in objects.values())
        # A first disk, a seed, a console log and a book of its snapshots for each, nothing else.
        assert len(names) - len(data) == 3 * len(uids) + books, names
        assert {name[:36] for name in names} - {name[:36] for name in data} == uids
        having = {
            f"volume-{obj['metadata']['namespace']}.{each['id']}.qcow2"
            for obj in objects.values()
            for each in obj["status"].get("volumes") or ()
        }
        assert having <= data
        check_kept({name.removeprefix("volume-") for name in data - having}, objects, self.begun)
        self.check_images(Shelf(frozenset(pool.listVolumes())), objects)
        connection.close()

    def check_images(self, shelf: Shelf, objects: dict[str, Object]) -> None:
        """See that the images are whole, those that machines brought for themselves also once."""
        assert not shelf.unfinished()
        assert not list(shelf.stale())
        for namespace in objects:
            if "new image" not in self.begun[namespace].name:
                continue
            path = f"/{namespace}.raw"
            of_it = f"-{key_of(self.images.url + path)}-"
            [image] = [each for each in shelf.images() if of_it in each.volume]
            assert shelf.from_source(self.images.url + path) == image
            file, served = self.daemon.directory / "lib/novacron" / image.volume, self.images.files
            if image.format == "raw":
                assert file.read_bytes() == served[path]
                continue
            foreign = self.daemon.directory / "served.vmdk"
            foreign.write_bytes(served[path])
            compare = ["qemu-img", "compare", "-f", "qcow2", "-F", "vmdk", file, foreign]
            subprocess.run(compare, check=True, stdout=subprocess.DEVNULL)
            assert image.virtual_bytes == 2 * len(DEAF)


@pytest.fixture
def theatre(
    request: pytest.FixtureRequest, cluster: ControlPlane, api: Api, tmp_path: Path
) -> Iterator[Theatre]:
    """One scenario on a daemon of its own."""
    name = "real-" + request.param.name.replace(" ", "-")
    daemon = LibvirtDaemon(tmp_path / "daemon").start()
    try:
        with image_server() as images:
            ground = Real(daemon, images, directory_with_tiny(tmp_path / "images"))
            stage = Theatre(cluster, api, tmp_path, request.param, name, ground)
            stage.prepare_host()
            yield stage
            stage.clear()
            ground.check_nothing_leaked({})
    finally:
        daemon.stop()


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "theatre",
    [
        pytest.param(each, marks=[] if each.name == EVERYDAY else [pytest.mark.full], id=each.name)
        for each in REAL_SCENARIOS
    ],
    indirect=True,
)
def test_killed_at_any_write_to_libvirt_it_ends_as_if_undisturbed(theatre: Theatre) -> None:
    """No domain, disk or file is leaked, doubled or lost, wherever the process dies."""
    theatre.play_all()
