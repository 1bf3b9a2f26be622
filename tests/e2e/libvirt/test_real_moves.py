"""Real guests move between real hosts while they count aloud: they are never started anew."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from subprocess import PIPE
from xml.etree import ElementTree as ET

import libvirt
import libvirt_qemu
import pytest

from api import Api
from e2e.conftest import Stage
from e2e.libvirt.moving import SLOW, FleetStage, fleet_stage, result
from e2e.test_moves import novacron
from fleet import kill_daemon
from inside_guest import agent_answers, inside
from machines import condition
from novacron.localcluster.hypervisor import Fleet, Hypervisor
from operators import RunningOperator, eventually
from rights import ROOT

pytestmark = pytest.mark.skipif(not ROOT, reason="hosts of their own need root")

# As the operator of these tests is told.
GRACE_SECONDS = 3
BYTES_A_SECOND = 10_000_000
MIB = 1024 * 1024


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


def test_a_guest_moves_and_goes_on_counting(shared: FleetStage) -> None:
    """With disks that both hosts reach nothing is copied, and its address comes along."""
    obj = shared.run("counter")
    obj = shared.scene.until("counter", lambda obj: bool(obj["status"].get("ipAddresses")))
    before = shared.tick(obj, 0)
    assert condition(obj, "LiveMigratable")["status"] == "True"
    shared.ask("counter", migrate_to="any")
    done = shared.moved("counter")
    migration = done["status"]["migration"]
    assert migration["result"] == "Succeeded", migration
    assert done["status"]["nodeName"] == migration["targetNode"] == shared.hosts[1]
    assert migration["transferredBytes"] > 0
    assert migration["downtimeMilliseconds"] >= 0
    assert done["status"]["ipAddresses"] == obj["status"]["ipAddresses"]
    assert before < shared.tick(done, 1) < before + 60
    assert shared.guests(done) == [1]


def test_a_host_of_another_kind_is_no_place_to_go(shared: FleetStage) -> None:
    """Nor is it chosen when the real one is closed: what a guest is there nobody could send."""
    shared.run("true-to-kind")
    other = shared.scene.add_host(labels={"test/fleet": shared.scene.namespace})
    shared.scene.api.patch_host(shared.hosts[1], {"spec": {"unschedulable": True}})
    shared.ask("true-to-kind", migrate_to="any", migrate_stop_allowed="true")
    migration = shared.moved("true-to-kind")["status"]["migration"]
    assert (migration["result"], migration["reason"]) == ("Refused", "NoHostFits")
    assert "1 has another driver than libvirt" in migration["message"]
    shared.ask("true-to-kind", migrate_to=other)
    done = shared.scene.until(
        "true-to-kind", lambda obj: obj["status"]["migration"].get("targetNode") == other
    )
    assert "has another driver than libvirt" in done["status"]["migration"]["message"]


@pytest.mark.full
def test_a_guest_moves_with_its_disks(apart: FleetStage) -> None:
    """They are copied with all that is on them, a volume too; what was left behind goes."""
    obj = apart.run("carrier", volumes=[DATA])
    before = apart.tick(obj, 0)
    with apart.domain(obj, 0) as domain:
        eventually(lambda: agent_answers(domain), lambda: "its agent answers")
        inside(domain, f"{MAKE_FILE}; dd if=/root/file of=/dev/vdc conv=fsync")
        kept = inside(domain, SUMS)
    apart.ask("carrier", migrate_to=apart.hosts[1])
    done = apart.moved("carrier")
    assert done["status"]["migration"]["result"] == "Succeeded", done["status"]["migration"]
    assert before < apart.tick(done, 1) < before + 60
    with apart.domain(obj, 1) as domain:
        assert inside(domain, SUMS) == kept
    apart.ask("carrier", migrate_to=apart.hosts[0])
    apart.scene.until("carrier", lambda obj: obj["status"]["nodeName"] == apart.hosts[0])
    done = apart.moved("carrier")
    assert apart.tick(done, 0) > before
    with apart.domain(obj, 0) as domain:
        assert inside(domain, SUMS) == kept


DATA = {"name": "data", "size": "32Mi", "reclaimPolicy": "Delete"}
MAKE_FILE = "dd if=/dev/urandom of=/root/file bs=1M count=8 conv=fsync"
# Not what it has in memory, which came along on another way.
SUMS = (
    "echo 3 >/proc/sys/vm/drop_caches; sha256sum </root/file; "
    "dd if=/dev/vdc bs=1M count=8 2>/dev/null | sha256sum"
)


@pytest.mark.full
def test_memory_that_a_guest_was_given_while_it_ran_comes_along(shared: FleetStage) -> None:
    """What is in it too; the other host knows the module, and can plug in another one."""
    obj = shared.run("grown", memory="1Gi")
    before = shared.tick(obj, 0)
    with shared.domain(obj, 0) as domain:
        eventually(lambda: agent_answers(domain), lambda: "its agent answers")
        small = memory_kib(domain)
    grow(shared, "grown", "1536Mi")
    with shared.domain(obj, 0) as domain:
        assert modules(domain) == [512]
        eventually(
            lambda: memory_kib(domain) - small == 512 * 1024, lambda: str(memory_kib(domain))
        )
        free = int(inside(domain, FREE_ABOVE))
        kept = inside(domain, f"{FILL} && sha256sum /big/data")
        assert free - int(inside(domain, FREE_ABOVE)) > 24000, "the file is in the new memory"
    shared.ask("grown", migrate_to=shared.hosts[1])
    done = shared.moved("grown")
    assert done["status"]["migration"]["result"] == "Succeeded", done["status"]["migration"]
    assert done["status"]["resources"]["memory"]["available"] == "1536Mi"
    assert not condition(done, "RestartRequired")
    assert before < shared.tick(done, 1) < before + 120
    with shared.domain(obj, 1) as domain:
        assert modules(domain) == [512]
        assert memory_kib(domain) - small == 512 * 1024
        assert inside(domain, "sha256sum /big/data") == kept
    grow(shared, "grown", "1792Mi")
    with shared.domain(obj, 1) as domain:
        assert modules(domain) == [512, 256]
    shared.ask("grown", migrate_to=shared.hosts[0])
    done = shared.scene.until("grown", lambda obj: obj["status"]["nodeName"] == shared.hosts[0])
    with shared.domain(obj, 0) as domain:
        assert modules(domain) == [512, 256]
        assert inside(domain, "sha256sum /big/data") == kept
    assert shared.tick(done, 0) > before
    assert shared.guests(done) == [0]


# Linux takes what is above 4 GiB first, and of this guest that is only what was plugged in.
FILL = (
    "mkdir -p /big && mount -t tmpfs -o size=200m none /big && "
    "dd if=/dev/urandom of=/tmp/seed bs=1M count=1 && "
    "for n in $(seq 100); do cat /tmp/seed; done >/big/data"
)
FREE_ABOVE = "sed -n '/zone *Normal/,/nr_free_pages/s/.*nr_free_pages *//p' /proc/zoneinfo"


def grow(stage: FleetStage, name: str, memory: str) -> None:
    """Give a running guest more memory, and wait until it has it."""
    size = {"spec": {"template": {"spec": {"resources": {"memory": memory}}}}}
    stage.scene.api.patch_machine(stage.scene.namespace, name, size)
    stage.scene.until(name, lambda obj: obj["status"]["resources"]["memory"]["available"] == memory)


def modules(domain: libvirt.virDomain) -> list[int]:
    """Return the sizes in MiB of all memory that libvirt knows to be plugged in."""
    found = ET.fromstring(domain.XMLDesc()).findall("devices/memory[@model='dimm']/target/size")
    return [int(size.text or 0) // 1024 for size in found]


def memory_kib(domain: libvirt.virDomain) -> int:
    """Return how much memory the guest itself sees."""
    return int(inside(domain, "grep MemTotal /proc/meminfo").split()[1])


@dataclass(frozen=True)
class Way:
    """How QEMU itself says that it sends a guest."""

    capabilities: frozenset[str]
    encrypted: bool
    bandwidth: int

    @classmethod
    def of(cls, domain: libvirt.virDomain) -> "Way":
        """Ask the QEMU of a guest that is under way."""
        able, how = (
            json.loads(libvirt_qemu.qemuMonitorCommand(domain, json.dumps({"execute": asked}), 0))
            for asked in ("query-migrate-capabilities", "query-migrate-parameters")
        )
        return cls(
            frozenset(each["capability"] for each in able["return"] if each["state"]),
            bool(how["return"].get("tls-creds")),
            how["return"]["max-bandwidth"],
        )


@pytest.mark.full
def test_a_guest_travels_encrypted_and_no_faster_than_allowed(shared: FleetStage) -> None:
    """QEMU's own encryption, with the certificates that the hosts have."""
    policy = {"encrypted": True, "bandwidth": "80Mbps", "compression": True}
    obj = shared.run("secret", policy=policy)
    before = shared.tick(obj, 0)
    shared.ask("secret", migrate_to=shared.hosts[1])
    shared.under_way("secret")
    with shared.domain(obj, 0) as domain:
        way = Way.of(domain)
    assert way.encrypted
    assert way.capabilities >= {"xbzrle", "auto-converge"}
    assert way.bandwidth == BYTES_A_SECOND // MIB * MIB
    done = shared.moved("secret")
    migration = done["status"]["migration"]
    assert migration["result"] == "Succeeded", migration
    begun, ended = (datetime.fromisoformat(migration[at]) for at in ("startTime", "endTime"))
    least = migration["transferredBytes"] / BYTES_A_SECOND
    assert least > 2, "enough to tell"
    # Both are whole seconds.
    assert (ended - begun).total_seconds() + 1 >= least
    assert shared.tick(done, 1) > before


@dataclass(frozen=True)
class Copy:
    """How QEMU itself says that it copies a disk, and where to."""

    address: str
    speed: int

    @classmethod
    def of(cls, domain: libvirt.virDomain) -> "Copy":
        """Ask the QEMU of a guest whose one disk is being copied."""
        jobs, nodes = (
            json.loads(libvirt_qemu.qemuMonitorCommand(domain, json.dumps({"execute": asked}), 0))
            for asked in ("query-block-jobs", "query-named-block-nodes")
        )
        (speed,) = [each["speed"] for each in jobs["return"] if each["type"] == "mirror"]
        (address,) = [each["file"] for each in nodes["return"] if each["drv"] == "nbd"]
        return cls(address, speed)

    def told_to_anybody(self, host: Hypervisor) -> str:
        """Return what somebody on a host is told who asks for the disk without a certificate."""
        within = ["ip", "netns", "exec", host.namespace or ""]
        asked = [*within, "qemu-img", "info", self.address]
        done = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=60)
        return done.stdout + done.stderr


@pytest.mark.full
def test_disks_that_are_copied_travel_encrypted_too(apart: FleetStage) -> None:
    """Where they come in nobody is heard who does not encrypt, so nothing came in the clear."""
    obj = apart.run("sealed", policy={"encrypted": True, "bandwidth": "80Mbps"})
    before = apart.tick(obj, 0)
    apart.ask("sealed", migrate_to=apart.hosts[1])
    apart.under_way("sealed")
    with apart.domain(obj, 0) as domain:
        way, copy = Way.of(domain), Copy.of(domain)
        told = copy.told_to_anybody(apart.fleet.hosts[0])
        assert Copy.of(domain) == copy, "it was asked while the disk was on its way"
    assert way.encrypted
    assert way.bandwidth == copy.speed == BYTES_A_SECOND // MIB * MIB
    assert "TLS negotiation required" in told
    done = apart.moved("sealed")
    assert done["status"]["migration"]["result"] == "Succeeded", done["status"]["migration"]
    assert done["status"]["migration"]["transferredBytes"] > 256 * MIB, "its disk is in it too"
    assert before < apart.tick(done, 1) < before + 180
    assert apart.guests(done) == [1]


@pytest.mark.full
def test_a_move_is_cancelled_and_the_guest_goes_on(apart: FleetStage) -> None:
    """Where it was; nothing is left where it did not go."""
    obj = apart.run("stays", policy=SLOW)
    before = apart.tick(obj, 0)
    apart.ask("stays", migrate_to=apart.hosts[1])
    first = apart.under_way("stays", percent=1)["status"]["migration"]
    with apart.domain(obj, 0) as domain:
        way = Way.of(domain)
        told = Copy.of(domain).told_to_anybody(apart.fleet.hosts[0])
    assert not way.encrypted
    assert "virtual size: 256 MiB" in told, "nobody asked for encryption"
    assert "xbzrle" not in way.capabilities
    assert "auto-converge" in way.capabilities
    assert 0 < first["progress"] < 100
    more = first["transferredBytes"] + 1
    apart.scene.until(
        "stays", lambda obj: obj["status"]["migration"].get("transferredBytes", 0) >= more
    )
    apart.ask("stays", migrate_cancel="true")
    done = apart.moved("stays")
    assert done["status"]["migration"]["result"] == "Cancelled"
    assert apart.tick(done, 0) > before
    assert apart.guests(done) == [0]


@pytest.mark.full
def test_a_host_that_takes_in_others_is_waited_for(shared: FleetStage) -> None:
    """Each machine that comes takes a port, of which libvirt has only so many."""
    obj = shared.run("later")
    before = shared.tick(obj, 0)
    with ports_in_use(shared.fleet.hosts[1]):
        shared.ask("later", migrate_to=shared.hosts[1])
        shared.scene.until(
            "later", lambda obj: "at a time" in condition(obj, "Moved").get("message", "")
        )
        assert shared.guests(obj) == [0]
    done = shared.moved("later")
    assert done["status"]["migration"]["result"] == "Succeeded", done["status"]["migration"]
    assert before < shared.tick(done, 1) < before + 60


@contextmanager
def ports_in_use(host: Hypervisor) -> Iterator[None]:
    """Have all ports taken on a host at which machines come in."""
    assert host.membership is not None
    ports = host.membership.ports
    program = f"""
import socket
taken = [socket.create_server(("", port)) for port in range({ports.start}, {ports.stop})]
print("taken", flush=True)
input()
"""
    command = ["ip", "netns", "exec", host.namespace or "", sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "taken\n"
        try:
            yield
        finally:
            holder.communicate("\n", 10)


@pytest.mark.full
def test_a_guest_that_moves_is_deleted(apart: FleetStage) -> None:
    """From both hosts; the fixture looks at what is left."""
    obj = apart.run("doomed", policy=SLOW)
    apart.ask("doomed", migrate_to=apart.hosts[1])
    apart.under_way("doomed")
    apart.scene.api.delete_machine(apart.scene.namespace, "doomed")
    apart.scene.until_gone("doomed")
    assert apart.guests(obj) == []
    assert apart.left_behind() == []


@pytest.mark.full
def test_an_operator_that_is_killed_adopts_the_move(shared: FleetStage) -> None:
    """The hosts go on without it; the next one finds the move and writes down how it ended."""
    obj = shared.run("adopted", policy={"bandwidth": "160Mbps", "compression": False})
    before = shared.tick(obj, 0)
    shared.ask("adopted", migrate_to=shared.hosts[1])
    shared.under_way("adopted")
    shared.scene.operator.kill()
    shared.scene.operator.start()
    done = shared.moved("adopted")
    assert done["status"]["migration"]["result"] == "Succeeded", done["status"]["migration"]
    assert shared.guests(done) == [1]
    assert shared.tick(done, 1) > before


@pytest.mark.full
def test_the_target_dies_and_the_guest_goes_on(shared: FleetStage) -> None:
    """Where it was, with a reason; what may be left is removed when the host is back."""
    obj = shared.run("survivor", policy=SLOW)
    before = shared.tick(obj, 0)
    shared.ask("survivor", migrate_to=shared.hosts[1])
    shared.under_way("survivor")
    shared.fleet.hosts[1].power_off()
    done = shared.moved("survivor")
    assert done["status"]["migration"]["result"] == "Failed"
    assert done["status"]["migration"]["reason"] == "TargetUnreachable"
    assert shared.tick(done, 0) > before
    shared.fleet.start()
    shared.scene.until("survivor", lambda obj: not obj["status"].get("leftoverHosts"))


@pytest.mark.full
def test_the_daemon_of_the_source_dies_and_one_guest_survives(shared: FleetStage) -> None:
    """libvirt itself gives the move up when it is back; until then nobody starts a second one."""
    obj = shared.run("orphan", policy=SLOW)
    before = shared.tick(obj, 0)
    shared.ask("orphan", migrate_to=shared.hosts[1])
    shared.under_way("orphan")
    kill_daemon(shared.fleet.hosts[0])
    shared.scene.until("orphan", lambda obj: condition(obj, "Ready").get("status") == "Unknown")
    shared.fleet.start()
    done = shared.moved("orphan")
    (number,) = shared.guests(done)
    assert done["status"]["nodeName"] == shared.hosts[number]
    assert shared.tick(done, number) > before


@pytest.mark.full
def test_without_certificates_nothing_travels(
    libvirt_operator: RunningOperator, api: Api, fleet: Fleet
) -> None:
    """A machine that is to travel encrypted is not sent in the clear."""
    scene = Stage(api, libvirt_operator, libvirt_operator.namespaces[0], [])
    stage = FleetStage.declared(scene, fleet, "shared", tls=False)
    obj = stage.run("careful", policy={"encrypted": True})
    assert condition(obj, "LiveMigratable")["reason"] == "NoCertificates"
    stage.ask("careful", migrate_to=stage.hosts[1])
    done = stage.moved("careful")
    assert done["status"]["migration"]["reason"] == "NoCertificates"
    assert "spec.libvirt.migration.tls" in done["status"]["migration"]["message"]
    assert stage.guests(obj) == [0]
    scene.clear()


@pytest.mark.full
def test_a_drained_host_is_left_by_guests_that_run_and_by_those_that_do_not(
    shared: FleetStage,
) -> None:
    """A stopped one is moved without ever running, and a running one no faster than it may."""
    running, off = shared.run("running", policy={"bandwidth": "160Mbps"}), shared.run("off")
    before = shared.tick(running, 0)
    shared.scene.api.patch_machine(shared.scene.namespace, "off", {"spec": {"running": False}})
    shared.scene.until("off", lambda obj: obj["status"]["phase"] == "Stopped")
    shared.scene.api.patch_host(shared.hosts[0], {"spec": {"drain": {}}})
    shared.under_way("running")
    with shared.domain(running, 0) as domain:
        assert Way.of(domain).bandwidth == 2 * BYTES_A_SECOND // MIB * MIB
    shared.scene.until_host(
        shared.hosts[0], lambda obj: condition(obj, "Drained").get("status") == "True"
    )
    assert shared.tick(running, 1) > before
    stopped = shared.scene.until("off", lambda obj: result(obj) == "Succeeded")
    assert stopped["status"]["nodeName"] == shared.hosts[1]
    assert shared.guests(off) == []
    shared.scene.api.patch_machine(shared.scene.namespace, "off", {"spec": {"running": True}})
    shared.scene.until_running("off")
    assert shared.tick(off, 1) >= 1
    shared.scene.api.patch_host(shared.hosts[0], {"spec": {"drain": None}})


@pytest.mark.full
def test_a_guest_whose_wishes_change_goes_on_where_they_are_met(shared: FleetStage) -> None:
    """Nobody asked for a move; a new label on the other host alone was no reason for one."""
    obj = shared.run("choosy")
    before = shared.tick(obj, 0)
    mark = {"test/side": shared.scene.namespace}
    shared.scene.api.patch_host(shared.hosts[1], {"spec": {"labels": mark}})
    obj = shared.scene.until_running("choosy")
    assert not obj["status"].get("migration")
    wish = {"spec": {"template": {"spec": {"nodeSelector": mark}}}}
    shared.scene.api.patch_machine(shared.scene.namespace, "choosy", wish)
    done = shared.moved("choosy")
    migration = done["status"]["migration"]
    assert migration["result"] == "Succeeded", migration
    assert done["status"]["nodeName"] == migration["targetNode"] == shared.hosts[1]
    assert before < shared.tick(done, 1) < before + 120
    assert shared.guests(done) == [1]


@pytest.mark.full
def test_a_guest_moves_and_its_host_is_drained_by_the_command_line(shared: FleetStage) -> None:
    """There and back; each command ends when the guest is where it says."""
    obj = shared.run("typed")
    before = shared.tick(obj, 0)
    here, there = shared.hosts
    moved = novacron(shared.scene, "vm", "migrate", "typed", "--to", there, "--wait")
    assert f"moved to {there}" in moved.stdout
    assert shared.guests(obj) == [1]
    between = shared.tick(obj, 1)
    assert before < between < before + 120
    drained = novacron(shared.scene, "host", "drain", there, "--wait", namespaced=False)
    assert "no machine is left on it" in drained.stderr
    assert f"{there} drained" in drained.stdout
    assert shared.guests(obj) == [0]
    assert between < shared.tick(obj, 0) < between + 120
    done = shared.scene.until("typed", lambda obj: obj["status"]["nodeName"] == here)
    assert done["status"]["migration"]["result"] == "Succeeded", done["status"]["migration"]
    novacron(shared.scene, "host", "uncordon", there, namespaced=False)


@pytest.mark.full
def test_guests_of_a_lost_host_begin_anew_only_when_it_is_fenced(shared: FleetStage) -> None:
    """Until somebody says that it is off nobody can know, so nothing is started."""
    obj = shared.run("restarted")
    shared.tick(obj, 0)
    shared.fleet.hosts[0].power_off()
    shared.scene.until("restarted", lambda obj: condition(obj, "Ready")["status"] == "Unknown")
    time.sleep(3 * GRACE_SECONDS)
    assert shared.guests(obj) == []
    fence = [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]
    shared.scene.api.patch_host(shared.hosts[0], {"spec": {"taints": fence}})
    shared.scene.until("restarted", lambda obj: obj["status"]["nodeName"] == shared.hosts[1])
    done = shared.scene.until_running("restarted")
    assert shared.tick(done, 1) >= 1
    shared.fleet.start()
    shared.scene.api.patch_host(shared.hosts[0], {"spec": {"taints": None}})
    shared.scene.until("restarted", lambda obj: not obj["status"].get("leftoverHosts"))
    assert shared.guests(done) == [1]


@pytest.mark.full
def test_a_false_fence_never_gives_two_guests_one_disk(shared: FleetStage) -> None:
    """QEMU locks its images: the second guest does not start while the first one runs."""
    obj = shared.run("locked")
    shared.tick(obj, 0)
    kill_daemon(shared.fleet.hosts[0])  # its guest goes on
    fence = [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]
    shared.scene.api.patch_host(shared.hosts[0], {"spec": {"taints": fence}})
    shared.scene.until("locked", lambda obj: "lock" in condition(obj, "Powered").get("message", ""))
    assert shared.guests(obj) == []
    shared.fleet.start()
    shared.scene.api.patch_host(shared.hosts[0], {"spec": {"taints": None}})
    eventually(
        lambda: shared.guests(obj) == [1], lambda: f"one guest: {shared.scene.operator.log[-4000:]}"
    )
