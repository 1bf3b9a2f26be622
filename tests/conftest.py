"""Fixtures shared by all tests.

A test that needs a real API server asks for one of these:

``control_plane``
    One etcd + kube-apiserver for the whole run (no controller manager, no scheduler; so
    nothing collects garbage and namespaces stay Terminating). It has ``.kubeconfig`` (admin),
    ``.url``, ``.kubectl("get", "ns", "-o", "name", input=None) -> str`` (raises
    LocalClusterError), ``.client_certificate(user, groups) -> kubeconfig path``. Do not stop,
    restart or kill it: others use it.

``namespace``
    The name of a fresh namespace on ``control_plane``, made for one test.

``new_control_plane``
    A function ``(components=API_ONLY, extra_flags={}) -> ControlPlane`` that starts one of
    the test's own, for tests that break it: ``.kill(name)``, ``.restart(name)``,
    ``.processes.stop(name)`` and then ``.start()``, on the same port; ``.ready()`` asks
    /readyz. ``extra_flags={"kube-apiserver": ["--etcd-compaction-interval=1s"]}`` adds flags.
    All are stopped when the test ends.

Programs come from the ordinary cache (built at first use) or from NOVACRON_KUBERNETES_BIN.
"""

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from control_plane import API_ONLY, throw_away
from novacron.localcluster.binaries import locate
from novacron.localcluster.controlplane import ControlPlane
from novacron.localcluster.home import Home
from novacron.localcluster.progress import Silent


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
        plane.stop()


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
            plane.stop()


@pytest.fixture
def namespace(control_plane: ControlPlane) -> str:
    """A namespace of this test's own."""
    name = f"test-{uuid.uuid4().hex[:10]}"
    control_plane.kubectl("create", "namespace", name)
    return name
