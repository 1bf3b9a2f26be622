"""Real guests that stand still, in a full pool or asleep: they say so, and go on when they can."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import libvirt
import pytest

from api import Api
from e2e.conftest import Stage
from e2e.libvirt.conftest import ImageServer, LibvirtStage
from e2e.libvirt.test_real_machine import qemu_pid
from fleet import Console
from inside_guest import agent_answers, inside
from libvirt_daemon import OF_ALL, LibvirtDaemon, add_pool, shared_daemon
from machines import condition
from operators import RunningOperator, eventually
from rights import ROOT

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not ROOT, reason="a file system of its own needs root"),
]

ROOM_MIB, FILLER_MIB, WRITTEN_MIB = 64, 40, 48
VOLUME = {"name": "data", "size": "128Mi", "storageClass": "small", "reclaimPolicy": "Delete"}
DISK = "/dev/vdc"
WRITE = f"dd if=/dev/zero of={DISK} bs=1M count={WRITTEN_MIB} conv=fsync"
STANDS_STILL = [libvirt.VIR_DOMAIN_PAUSED, libvirt.VIR_DOMAIN_PAUSED_IOERROR]


@dataclass
class Narrow:
    """A stage whose host has a pool that is soon full, most of it taken by a file."""

    stage: LibvirtStage
    daemon: LibvirtDaemon
    place: Path

    def fill(self) -> None:
        """Take most of the room."""
        file, count = f"of={self.place}/filler", f"count={FILLER_MIB}"
        self.daemon.in_its_mounts("dd", "if=/dev/zero", file, "bs=1M", count, "status=none")

    def make_room(self) -> None:
        """Give it back."""
        self.daemon.in_its_mounts("rm", f"{self.place}/filler")

    def look_at_host(self) -> None:
        """Have the host looked at now, as it is every half minute."""
        label = {"labels": {"test/looked": uuid4().hex[:8]}}
        self.stage.scene.api.patch_host(self.stage.host, {"spec": label})


@pytest.fixture
def narrow(libvirt_operator: RunningOperator, api: Api, images: ImageServer) -> Iterator[Narrow]:
    """A host with a class of storage that is a small file system."""
    daemon = shared_daemon()
    scene = Stage(api, libvirt_operator, libvirt_operator.namespaces[0], [])
    stage = LibvirtStage(scene, "", daemon, images)
    with tempfile.TemporaryDirectory(prefix="novacron-narrow-") as directory:
        place = Path(directory)
        size = f"size={ROOM_MIB}m"
        daemon.in_its_mounts("mount", "-t", "tmpfs", "-o", size, "tmpfs", str(place))
        pool = add_pool(stage.outside, "small", place)
        try:
            stage.host = scene.add_host(
                driver="libvirt",
                endpoint=daemon.uri,
                simulation=None,
                overcommit={"disk": 10},
                libvirt={"storageClasses": [{"name": "small", "pool": "small"}]},
            )
            yield Narrow(stage, daemon, place)
            scene.clear()
            pool.refresh()
            left = {name for name in pool.listVolumes() if not name.startswith(OF_ALL)}
            assert left <= {"filler"}
        finally:
            pool.destroy()
            pool.undefine()
            daemon.in_its_mounts("umount", str(place))
            stage.outside.close()


def test_a_guest_whose_pool_is_full_stands_still_and_goes_on_when_there_is_room(
    narrow: Narrow,
) -> None:
    """QEMU stops it before it sees a failed write; nothing is lost, and nothing starts anew."""
    real = narrow.stage
    obj = real.create("writer", volumes=[VOLUME])
    real.scene.until_running("writer")
    domain = real.domain(obj)
    pid, console = qemu_pid(real, domain), Console(domain)
    eventually(lambda: agent_answers(domain), lambda: "its agent answers")
    before = console.tick()
    narrow.fill()
    inside(domain, f"({WRITE} && echo whole >/run/written) >/run/wrote 2>&1 &")

    told = real.scene.until("writer", lambda obj: condition(obj, "Ready")["status"] == "False")
    assert domain.state() == STANDS_STILL
    ready = condition(told, "Ready")
    assert ready["reason"] == "GuestPaused"
    assert "in pool small (" in ready["message"]
    assert f"of host {real.host}; it goes on by itself" in ready["message"]
    assert told["status"]["phase"] == "Failed"
    event = real.scene.until_event("writer", "GuestPaused")
    assert event["type"] == "Warning"
    narrow.look_at_host()
    real.scene.until("writer", lambda obj: "(0 MiB free" in condition(obj, "Ready")["message"])
    assert domain.state() == STANDS_STILL, "it is not tried in vain"

    narrow.make_room()
    narrow.look_at_host()
    real.scene.until_running("writer")
    assert domain.state() == [libvirt.VIR_DOMAIN_RUNNING, libvirt.VIR_DOMAIN_RUNNING_UNPAUSED]
    real.scene.until_event("writer", "Resumed")
    eventually(lambda: inside(domain, "cat /run/written") == "whole", lambda: "all was written")
    assert console.tick() > before, "it counts on, and does not begin at one"
    assert qemu_pid(real, domain) == pid
    console.close()


def test_a_guest_that_put_itself_to_sleep_says_so_until_it_is_woken(narrow: Narrow) -> None:
    """It is neither ready nor started anew: whoever had it sleep may want it so."""
    real = narrow.stage
    obj = real.create("sleeper")
    real.scene.until_running("sleeper")
    domain = real.domain(obj)
    pid = qemu_pid(real, domain)
    eventually(lambda: agent_answers(domain), lambda: "its agent answers")
    inside(domain, "(sleep 1; echo mem >/sys/power/state) >/dev/null 2>&1 &")
    told = real.scene.until("sleeper", lambda obj: condition(obj, "Ready")["status"] == "False")
    assert condition(told, "Ready")["reason"] == "GuestSuspended"
    assert f"virsh dompmwakeup {domain.name()}" in condition(told, "Ready")["message"]
    assert domain.state()[0] == libvirt.VIR_DOMAIN_PMSUSPENDED
    domain.pMWakeup()
    real.scene.until_running("sleeper")
    assert qemu_pid(real, domain) == pid
