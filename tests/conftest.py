"""Fixtures shared by all tests.

A test that needs a real API server asks for one of these:

``control_plane``
    One etcd + kube-apiserver for the whole run (no controller manager, no scheduler; so
    nothing collects garbage and namespaces stay Terminating). It has ``.kubeconfig`` (admin),
    ``.url``, ``.kubectl("get", "ns", "-o", "name", input=None) -> str`` (raises
    LocalClusterError), ``.client_certificate(user, groups) -> kubeconfig path``. Do not stop,
    restart or kill it: others use it.

``cluster``
    ``control_plane`` with our kinds and the operator's rights installed. Operators are started
    with ``operators.RunningOperator`` and stopped by the test that started them.

``api``
    A plain client for ``cluster``.

``namespace``
    The name of a fresh namespace on ``control_plane``, made for one test.

``local_cluster``
    A whole local cluster in a state directory of its own, brought up by ``novacron up`` once
    for the run, with the host ``local`` and the machine ``hello``. ``.ok("vm", "list")``,
    ``.fails(…)``, ``.json(…)`` and ``.call(…)`` run the command line on it. A test that breaks
    it mends it with ``.ok("up")``.

``new_control_plane``
    A function ``(components=API_ONLY, extra_flags={}) -> ControlPlane`` that starts one of
    the test's own, for tests that break it: ``.kill(name)``, ``.restart(name)``,
    ``.processes.stop(name)`` and then ``.start()``, on the same port; ``.ready()`` asks
    /readyz. ``extra_flags={"kube-apiserver": ["--etcd-compaction-interval=1s"]}`` adds flags.
    All are stopped when the test ends.

``node``
    A ``local_node.NodeCluster``: a whole control plane with a node that runs pods, shared by
    the run, and a namespace of this test's own. Needs root. A test that calls ``.kill_agent()``
    calls ``.start_agent()`` too.

``kubevirt_cluster``
    A ``kubevirt_bed.KubeVirtBed``: a whole control plane with a real KubeVirt (virt-api,
    virt-controller) and a stand-in for its nodes, shared by all workers of the run. Guests do
    not run; annotations make things fail (``FAIL``) or not happen (``HOLD``).

``importing_cluster``
    One more of them, a worker's own, in which images can be imported; for tests of the full run.

``kubevirt``
    The first one in a fresh namespace of this test's own: ``.create("virtualmachines", …)``,
    ``.ask(name, "stop")``, ``.instance(name)``, ``.wait(…)``.

``misunderstood``
    What caches logged of objects that one of their followers failed over. It is asked for by every
    test, which fails if there is any in the end; one that wants that clears it.

Programs come from the ordinary cache (built at first use) or from NOVACRON_KUBERNETES_BIN.
"""

import asyncio
import logging
import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from api import Api
from control_plane import API_ONLY, discard, throw_away
from fleet import stop_shared_fleet
from kubevirt_bed import KubeVirtBed, fresh_namespace, new_bed, shared_bed, stop_bed
from libvirt_daemon import stop_shared_daemon
from local_cluster import LocalCluster, processes_under
from local_node import NodeCluster, traces_of
from novacron.localcluster.binaries import locate
from novacron.localcluster.components import COMPONENTS
from novacron.localcluster.controlplane import ControlPlane
from novacron.localcluster.node.ability import inability
from novacron.workplace.home import Home
from novacron.workplace.progress import Silent
from operators import install


def pytest_configure() -> None:
    """Let there be no event loop that nobody closes.

    pytest-asyncio asks for the current one to put it back after a test; where none was ever
    set, asyncio makes one for it, and its end is a ResourceWarning in some innocent test.
    """
    asyncio.set_event_loop(None)


def pytest_sessionfinish() -> None:
    """End what tests share without asking for it by a fixture."""
    stop_shared_daemon()
    stop_shared_fleet()


class Kept(logging.Handler):
    """Keeps what is logged as an error."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one."""
        self.records.append(record)


@pytest.fixture(autouse=True)
def misunderstood() -> Iterator[list[logging.LogRecord]]:
    """Have a test fail in which somebody failed over an object: others go on, so nobody sees it."""
    log, kept = logging.getLogger("novacron.runtime.cache"), Kept()
    log.addHandler(kept)
    yield kept.records
    log.removeHandler(kept)
    assert [record.getMessage() for record in kept.records] == []


@pytest.fixture(scope="session")
def kubernetes_binaries() -> Path:
    """Where etcd, the Kubernetes programs and kubectl lie."""
    return locate(Home.default().cache, None, Silent())


@pytest.fixture(scope="session")
def control_plane(
    tmp_path_factory: pytest.TempPathFactory, kubernetes_binaries: Path
) -> Iterator[ControlPlane]:
    """An API server that all tests of the run share; see the top of this file."""
    plane = throw_away(tmp_path_factory.mktemp("cluster"), kubernetes_binaries)
    try:
        plane.start()
        yield plane
    finally:
        discard(plane)


@pytest.fixture(scope="session")
def cluster(control_plane: ControlPlane) -> ControlPlane:
    """The shared API server with our kinds installed; see the top of this file."""
    install(control_plane)
    return control_plane


@pytest.fixture(scope="session")
def api(cluster: ControlPlane) -> Iterator[Api]:
    """A plain client for ``cluster``, as its administrator."""
    client = Api(cluster.kubeconfig)
    yield client
    client.close()


@pytest.fixture(scope="session")
def local_cluster(
    tmp_path_factory: pytest.TempPathFactory, kubernetes_binaries: Path
) -> Iterator[LocalCluster]:
    """What ``novacron up`` gives a user, operator included; see the top of this file."""
    assert kubernetes_binaries
    local = LocalCluster(tmp_path_factory.mktemp("local") / "home", Home.default().cache)
    try:
        local.ok("up", "--provider", "simulation")
        yield local
    finally:
        local.call("purge", "--yes")
    assert processes_under(local.home) == []


@pytest.fixture(scope="session")
def node_plane(
    tmp_path_factory: pytest.TempPathFactory, kubernetes_binaries: Path
) -> Iterator[ControlPlane]:
    """A control plane with a node; when it stops, nothing of the pods may be left."""
    if problem := inability():
        pytest.skip(problem)
    # A dead node is noticed in a quarter of a minute instead of one.
    patience = ["--node-monitor-grace-period=15s", "--node-monitor-period=1s"]
    directory = tmp_path_factory.mktemp("node")
    flags = {"kube-controller-manager": patience}
    plane = throw_away(directory, kubernetes_binaries, COMPONENTS, flags)
    try:
        plane.start()
        yield plane
    finally:
        plane.kill("kube-controller-manager")  # so that it makes no pods anew
        plane.stop()
    assert processes_under(directory) == []
    assert traces_of(plane) == []


@pytest.fixture(scope="session")
def node_api(node_plane: ControlPlane) -> Iterator[Api]:
    """A plain client for ``node_plane``, as its administrator."""
    client = Api(node_plane.kubeconfig)
    yield client
    client.close()


@pytest.fixture
def node(node_plane: ControlPlane, node_api: Api) -> Iterator[NodeCluster]:
    """A node and a namespace of this test's own; see the top of this file."""
    cluster = NodeCluster(node_plane, node_api).begin()
    yield cluster
    cluster.clear()


@pytest.fixture(scope="session")
def kubevirt_cluster(
    tmp_path_factory: pytest.TempPathFactory, kubernetes_binaries: Path, testrun_uid: str
) -> Iterator[KubeVirtBed]:
    """A real KubeVirt with a stand-in for its nodes; see the top of this file."""
    assert kubernetes_binaries
    base = tmp_path_factory.getbasetemp()
    # With several workers each has a directory below that of the run.
    run = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with shared_bed(run / f"kubevirt-{testrun_uid}") as bed:
        yield bed


@pytest.fixture(scope="session")
def importing_cluster(
    tmp_path_factory: pytest.TempPathFactory, kubernetes_binaries: Path
) -> Iterator[KubeVirtBed]:
    """A KubeVirt cluster in which images can be imported, for tests of the full run."""
    assert kubernetes_binaries
    bed = new_bed(tmp_path_factory.mktemp("importing"), imports=True)
    install(bed.plane)
    yield bed
    stop_bed(bed)


@pytest.fixture
def kubevirt(kubevirt_cluster: KubeVirtBed) -> Iterator[KubeVirtBed]:
    """A real KubeVirt and a namespace of this test's own; see the top of this file."""
    with fresh_namespace(kubevirt_cluster) as bed:
        yield bed


@pytest.fixture
def new_control_plane(
    tmp_path: Path, kubernetes_binaries: Path
) -> Iterator[Callable[..., ControlPlane]]:
    """Start control planes that belong to this test alone; see the top of this file."""
    planes: list[ControlPlane] = []

    def start(
        components: Sequence[str] = API_ONLY,
        extra_flags: Mapping[str, Sequence[str]] | None = None,
    ) -> ControlPlane:
        directory = tmp_path / f"cluster-{len(planes)}"
        planes.append(throw_away(directory, kubernetes_binaries, components, extra_flags))
        planes[-1].start()
        return planes[-1]

    try:
        yield start
    finally:
        for plane in planes:
            discard(plane)


@pytest.fixture
def namespace(control_plane: ControlPlane) -> str:
    """A namespace of this test's own."""
    name = f"test-{uuid.uuid4().hex[:10]}"
    control_plane.kubectl("create", "namespace", name)
    return name
