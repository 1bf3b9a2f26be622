"""A real libvirt host behind a real operator, and a server of images."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

import libvirt
import pytest

from api import Api
from e2e.conftest import Stage
from e2e.libvirt.evidence import add_evidence
from e2e.libvirt.moving import FleetStage, fleet_stage, reached_by_tls
from fleet import own_fleet, shared_fleet
from guest_images import directory_with_tiny
from image_server import ImageServer, image_server
from libvirt_daemon import OF_ALL, LibvirtDaemon, shared_daemon
from machines import virtual_machine
from novacron.localcluster.controlplane import ControlPlane
from novacron.localcluster.hypervisor import Fleet, Hypervisor
from operators import RunningOperator

Object = dict[str, Any]

MIB = 1024 * 1024
# A boot sector that halts: a guest which does nothing and hears nothing.
HALT = bytes([0xFA, 0xF4, 0xEB, 0xFD]).ljust(510, b"\0") + b"\x55\xaa"
DEAF = HALT.ljust(MIB, b"\0")


@dataclass
class LibvirtStage:
    """A stage whose one host is real."""

    scene: Stage
    host: str
    daemon: LibvirtDaemon | Hypervisor
    images: ImageServer

    @cached_property
    def outside(self) -> libvirt.virConnect:
        """Somebody with virsh on the host."""
        return libvirt.open(self.daemon.uri)

    @property
    def run_directory(self) -> Path:
        """Where the daemon keeps what counts while it runs."""
        return self._part("run")

    @property
    def data_directory(self) -> Path:
        """Where the daemon keeps disks."""
        return self._part("lib")

    def _part(self, name: str) -> Path:
        below = self.daemon.directory / name
        return below / "libvirt" if isinstance(self.daemon, Hypervisor) else below

    def create(self, name: str, image: str = "builtin://tiny", **more: Any) -> Object:
        """Create a machine on the host."""
        more = {"cpu": 1, "memory": "512Mi", "disk": "256Mi"} | more
        beside = {name: more.pop(name) for name in ("checksum", "pullPolicy") if name in more}
        body = virtual_machine(name, self.scene.namespace, on=self.host, **more)
        body["spec"]["template"]["spec"]["image"] = {"source": image, **beside}
        return self.scene.api.create(body)

    def deaf(self, name: str, **more: Any) -> Object:
        """Create a machine whose guest does nothing, and wait until it runs."""
        self.create(name, self.images.add("deaf.raw", DEAF), **more)
        return self.scene.until_running(name)

    def patch(self, name: str, spec: Object) -> None:
        """Change a machine."""
        self.scene.api.patch_machine(self.scene.namespace, name, {"spec": spec})

    def domain(self, obj: Object) -> libvirt.virDomain:
        """Return a machine's domain."""
        return self.outside.lookupByUUIDString(obj["metadata"]["uid"])

    def left_behind(self) -> tuple[set[str], set[str]]:
        """Return the names of all domains, and of all volumes that are no images."""
        domains = {each.name() for each in self.outside.listAllDomains()}
        volumes: set[str] = set()
        for pool in self.outside.listAllStoragePools():
            pool.refresh()
            volumes |= {name for name in pool.listVolumes() if not name.startswith(OF_ALL)}
        return domains, volumes


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep what guests said when a test fails, before they are cleared away."""
    report = yield
    if call.when == "call" and report.failed:
        add_evidence(report, getattr(item, "funcargs", {}).values())
    return report


@pytest.fixture(scope="module")
def images() -> Iterator[ImageServer]:
    """Images by http."""
    with image_server() as server:
        yield server


@pytest.fixture(scope="module")
def libvirt_operator(
    cluster: ControlPlane, api: Api, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningOperator]:
    """One operator for all tests of a module, with little patience for guests.

    It watches a second namespace too, which may not do all that the first one may.
    """
    namespace = f"libvirt-{uuid4().hex[:8]}"
    namespaces = [namespace, f"others-of-{namespace}"]
    for each in namespaces:
        api.create_namespace(each)
    directory: Path = tmp_path_factory.mktemp("operator")
    tiny = directory_with_tiny(directory / "images")
    flags = (
        "--no-leader-elect",
        f"--images-directory={tiny}",
        "--shutdown-grace=4s",
        "--host-failure-grace=3s",
        f"--image-catalogue=images-{namespace}",
        f"--image-s3-secret=s3-{namespace}",
        f"--image-file-namespaces={namespace}",
        f"--image-claim-namespaces={namespace}",
    )
    operator = RunningOperator(cluster, directory, namespaces, flags=flags).start()
    yield operator
    assert operator.stop() == 0, operator.log


@pytest.fixture(params=["near", pytest.param("far", marks=pytest.mark.full)])
def real(
    request: pytest.FixtureRequest,
    libvirt_operator: RunningOperator,
    api: Api,
    images: ImageServer,
) -> Iterator[LibvirtStage]:
    """The operator with one real host and nothing on it; nothing may be left on it either.

    The far one is reached by its address and a certificate; none of its files is the operator's.
    """
    scene = Stage(api, libvirt_operator, libvirt_operator.namespaces[0], [])
    daemon: LibvirtDaemon | Hypervisor
    if request.param == "near":
        daemon = shared_daemon()
        reached: Object = {"endpoint": daemon.uri}
    else:
        daemon = shared_fleet().hosts[-1]
        fleet = shared_fleet()
        reached = reached_by_tls(api, fleet, fleet.count)
        reached["libvirt"] = {"network": daemon.network}
    host = scene.add_host(driver="libvirt", simulation=None, **reached)
    stage = LibvirtStage(scene, host, daemon, images)
    yield stage
    scene.clear()
    assert stage.left_behind() == (set(), set())
    stage.outside.close()


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    """Two real hosts that the tests of a module break and mend."""
    with own_fleet() as hosts:
        yield hosts


@pytest.fixture(params=["shared"])
def stage(
    request: pytest.FixtureRequest, libvirt_operator: RunningOperator, api: Api, fleet: Fleet
) -> Iterator[FleetStage]:
    """Those two with their disks in one place, unless a test asks for another pool."""
    with fleet_stage(libvirt_operator, api, fleet, request.param) as found:
        yield found


@pytest.fixture
def shared(libvirt_operator: RunningOperator, api: Api, fleet: Fleet) -> Iterator[FleetStage]:
    """The two hosts with their disks in one place."""
    with fleet_stage(libvirt_operator, api, fleet, "shared") as found:
        yield found


@pytest.fixture
def apart(libvirt_operator: RunningOperator, api: Api, fleet: Fleet) -> Iterator[FleetStage]:
    """The two hosts with disks of their own."""
    with fleet_stage(libvirt_operator, api, fleet, "novacron") as found:
        yield found
