"""Several operators and one real host: who leads asks it, and the others wait for their turn."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import libvirt
import pytest

from api import Api
from e2e.conftest import Stage
from e2e.libvirt.conftest import DEAF, LibvirtStage
from image_server import ImageServer
from libvirt_daemon import LibvirtDaemon, own_daemon
from novacron.localcluster.controlplane import ControlPlane
from operators import RunningOperator, eventually

# Hosts are asked once a second in tests.
INTERVALS_SECONDS = 5
RUNNING = libvirt.VIR_CONNECT_LIST_DOMAINS_ACTIVE


@pytest.fixture
def daemon() -> Iterator[LibvirtDaemon]:
    """A host that nobody else talks to."""
    with own_daemon() as found:
        yield found


def is_connected(operator: RunningOperator, daemon: LibvirtDaemon) -> bool:
    """Say whether a socket of an operator has one of the daemon's at its other end."""
    assert operator.process is not None
    files = Path(f"/proc/{daemon.pid}/fd").iterdir()
    theirs = {str(each.readlink()) for each in files if each.is_symlink()}
    lines = subprocess.run(["ss", "-xpH"], check=True, capture_output=True, text=True).stdout
    # Kind, state, two queues, then path and number of each end.
    ours = [line.split() for line in lines.splitlines() if f"pid={operator.process.pid}," in line]
    return any(f"socket:[{each[7]}]" in theirs for each in ours)


def ever_connected(operators: list[RunningOperator], daemon: LibvirtDaemon) -> bool:
    """Say whether one of these talks to the daemon within a while."""
    deadline = time.monotonic() + INTERVALS_SECONDS
    while time.monotonic() < deadline:
        if any(is_connected(each, daemon) for each in operators):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.full
def test_a_host_is_asked_by_one_operator_however_many_stand_by(
    cluster: ControlPlane, api: Api, daemon: LibvirtDaemon, images: ImageServer, tmp_path: Path
) -> None:
    """As the chart has it: three replicas, one leads. When that one dies, another one asks."""
    namespace = f"standing-by-{uuid4().hex[:8]}"
    api.create_namespace(namespace)
    replicas = [
        RunningOperator(
            cluster, tmp_path, [namespace], flags=("--leader-elect",), name=f"replica-{number}"
        )
        for number in range(3)
    ]
    first, *others = replicas
    first.start()
    scene = Stage(api, first, namespace, [])
    host = scene.add_host(driver="libvirt", simulation=None, endpoint=daemon.uri)
    stage = LibvirtStage(scene, host, daemon, images)
    stage.create("watched", images.add("deaf.raw", DEAF))
    scene.until_running("watched")
    assert is_connected(first, daemon)
    for other in others:
        other.start()
    assert not ever_connected(others, daemon), "those who stand by ask nobody"

    def said() -> str:
        return "\n".join(each.log for each in others)

    assert all("gained leader" not in other.log for other in others)

    first.kill()
    eventually(lambda: any("gained leader" in other.log for other in others), said)
    eventually(lambda: any(is_connected(other, daemon) for other in others), said)
    killed = stage.domain(scene.api.machine(namespace, "watched") or {})
    killed.destroy()
    eventually(lambda: bool(stage.outside.listAllDomains(RUNNING)), said)
    stage.outside.close()
    api.delete_machine(namespace, "watched")
    scene.until_gone("watched")
    scene.clear()
    for other in others:
        assert other.stop() == 0, other.log
