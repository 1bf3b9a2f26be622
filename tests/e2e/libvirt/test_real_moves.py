"""Real guests move between real hosts while they count aloud: they are never started anew."""

from xml.etree import ElementTree as ET

import libvirt
import pytest

from e2e.libvirt.moving import FleetStage
from e2e.test_moves import novacron
from inside_guest import agent_answers, from_disk, inside
from machines import condition
from operators import eventually
from rights import ROOT

pytestmark = pytest.mark.skipif(not ROOT, reason="hosts of their own need root")


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
    assert migration["downtimeMilliseconds"] > 0
    assert done["status"]["ipAddresses"] == obj["status"]["ipAddresses"]
    assert before < shared.tick(done, 1) < before + 60
    assert shared.guests(done) == [1]


def test_a_host_of_another_kind_is_no_place_to_go(shared: FleetStage) -> None:
    """Nor is it chosen when the real one is closed: what a guest is there nobody could send."""
    shared.run("true-to-kind")
    other = shared.scene.add_host(labels={"test/fleet": shared.scene.namespace})
    shared.scene.close(shared.hosts[1])
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
SUMS = f"{from_disk('/root/file')} | sha256sum; {from_disk('/dev/vdc')} count=8 | sha256sum"


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
