"""A VirtualMachine that is a QEMU guest: what its owner asks for, and what others do to it."""

import os
import signal
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import libvirt
import pytest
import yaml

from e2e.libvirt.conftest import MIB, LibvirtStage, Object
from machines import condition
from novacron.core.quantity import mib, parse_quantity
from novacron.drivers.libvirt.domain import console_log
from operators import eventually

EXAMPLE = Path(__file__).parents[3] / "examples/23-updates.yaml"
# QEMU has work of its own beside the guest's one CPU.
MOST_CORES = 1.5
# What others may write to or remove from the same disk between two looks at it.
MEANWHILE_MIB = 2048


def qemu_pid(real: LibvirtStage, domain: libvirt.virDomain) -> int:
    """Return the process of a guest; 0 while libvirt has noted none."""
    path = real.run_directory / "qemu" / f"{domain.name()}.pid"
    try:
        return int(path.read_text() or 0)
    except FileNotFoundError:
        return 0  # libvirt takes it away when it sees that the guest is dead


def said(real: LibvirtStage, uid: str) -> str:
    """Return what a guest said on its console."""
    path: Path = real.data_directory / "novacron" / console_log(uid)
    return path.read_text(errors="replace")


def test_a_guest_boots_obeys_and_goes(real: LibvirtStage) -> None:
    """One boot for all that needs a guest which listens."""
    script = "#!/bin/sh\necho {} words of $(hostname)\n".format
    made = {"networks": [{"name": "default"}], "userData": script("last")}
    obj = real.create("hello", running=False, **made)
    uid = obj["metadata"]["uid"]
    real.scene.until("hello", lambda obj: (obj.get("status") or {}).get("phase") == "Stopped")
    # Until it has started for the first time its owner may think of something else.
    real.patch("hello", {"template": {"spec": {"userData": script("first")}}})
    assert "user data" in real.scene.until_event("hello", "Configured")["message"]
    real.patch("hello", {"running": True})
    obj = real.scene.until("hello", lambda obj: "ipAddresses" in obj.get("status", {}))
    assert obj["status"]["phase"] == "Running"
    assert obj["status"]["vmID"] == uid
    assert obj["status"]["nodeName"] == real.host
    assert real.domain(obj).name() == f"{real.scene.namespace}.hello"
    eventually(lambda: "first words of hello" in said(real, uid), lambda: said(real, uid))
    eventually(lambda: "tick 1" in said(real, uid), lambda: said(real, uid))
    assert "last words" not in said(real, uid)

    real.patch("hello", {"running": False})
    obj = real.scene.until("hello", lambda obj: obj["status"]["phase"] == "Stopped")
    assert real.domain(obj).state()[1] == libvirt.VIR_DOMAIN_SHUTOFF_SHUTDOWN, "it was asked"
    assert obj["status"].get("ipAddresses") is None

    real.patch("hello", {"running": True})
    real.scene.until_running("hello")
    eventually(lambda: "boot=2" in said(real, uid), lambda: said(real, uid))
    real.scene.api.delete_machine(real.scene.namespace, "hello")
    real.scene.until_gone("hello")
    assert real.left_behind() == (set(), set())


@pytest.mark.full
def test_what_a_guest_uses_is_in_its_status_and_among_the_metrics(real: LibvirtStage) -> None:
    """As libvirt tells somebody with virsh: a busy CPU, memory as the guest counts it, its disk."""
    script = "#!/bin/sh\ndd if=/dev/urandom of=/data bs=1M count=8 && sync\nyes >/dev/null &\n"
    real.create("busy", userData=script)
    api, place = real.scene.api, real.scene.namespace
    # What a guest that boots slowly does not tell at first is written a minute later.
    eventually(
        lambda: uses(api.machine(place, "busy") or {}).keys() == {"cpu", "memory", "disk"},
        lambda: str(api.machine(place, "busy")),
        seconds=150,
    )
    obj = api.machine(place, "busy") or {}
    assert 0 < uses(obj)["cpu"] <= MOST_CORES
    assert 0 < uses(obj)["memory"] < 1024 * MIB

    domain = real.domain(obj)
    eventually(
        lambda: (
            8 * MIB < metric(real, "disk_usage_bytes", 'disk="root",') == disk_bytes(domain)
            and 0 < metric(real, "memory_usage_bytes") == guest_memory_bytes(domain)
            and 0 < metric(real, "cpu_usage_cores") <= MOST_CORES
        ),
        lambda: f"{measured(domain)}\n{real.scene.operator.get('metrics', '/metrics')}",
    )

    # A status that was just written is not written again for a minute, but after a stop.
    real.patch("busy", {"running": False})
    real.scene.until("busy", lambda obj: obj["status"]["phase"] == "Stopped" and not uses(obj))
    eventually(lambda: metric(real, "cpu_usage_cores") == -1, lambda: "nothing is told of it")
    real.patch("busy", {"running": True})
    # Here too the first word may be of a guest that has hardly begun, and the next a minute later.
    eventually(
        lambda: "disk" in uses(api.machine(place, "busy") or {}),
        lambda: str(api.machine(place, "busy")),
        seconds=150,
    )
    obj = api.machine(place, "busy") or {}
    assert 8 * MIB < uses(obj)["disk"] <= disk_bytes(real.domain(obj))


def uses(obj: Object) -> dict[str, Decimal]:
    """Return what a machine's status says that it uses."""
    resources = obj.get("status", {}).get("resources") or {}
    return {
        name: parse_quantity(each["used"]) for name, each in resources.items() if "used" in each
    }


def measured(domain: libvirt.virDomain) -> dict[str, Any]:
    """Return what libvirt tells of a guest."""
    stats: dict[str, Any] = domain.connect().domainListGetStats([domain])[0][1]
    return stats


def disk_bytes(domain: libvirt.virDomain) -> int:
    """Return the room that a guest's disk takes, in whole MiB."""
    return int(measured(domain)["block.0.physical"]) // MIB * MIB


def guest_memory_bytes(domain: libvirt.virDomain) -> int | None:
    """Return the memory that is in use in a guest, in whole MiB, once the guest tells."""
    stats = measured(domain)
    if "balloon.usable" not in stats:
        return None
    return int(stats["balloon.available"] - stats["balloon.usable"]) // 1024 * MIB


def metric(real: LibvirtStage, name: str, label: str = "") -> float:
    """Return what the operator's metrics say of the machine called busy; -1 for nothing."""
    machine = f'namespace="{real.scene.namespace}",node="{real.host}",vm="busy"'
    begin = f"novacron_vm_{name}{{{label}{machine}}} "
    lines = (real.scene.operator.get("metrics", "/metrics") or "").splitlines()
    return next((float(line.removeprefix(begin)) for line in lines if line.startswith(begin)), -1)


def test_the_host_tells_what_it_is(real: LibvirtStage) -> None:
    """Whoever chooses a host wants to know whether guests are emulated there."""
    status = (real.scene.api.host(real.host) or {})["status"]
    truly = any(flag in Path("/proc/cpuinfo").read_text() for flag in (" vmx ", " svm "))
    assert status["accelerator"] == ("KVM" if truly and Path("/dev/kvm").exists() else "TCG")
    assert status["versions"]["qemu"]
    assert status["versions"]["libvirt"]
    assert any("q35" in each for each in status["machineTypes"])
    assert status["cpu"]["features"]
    assert status["storage"][0]["name"] == "novacron"
    assert status["lastSeen"]


def test_the_host_tells_which_cpus_are_near_to_which_memory(real: LibvirtStage) -> None:
    """As Linux tells it of the same machine."""
    numa = (real.scene.api.host(real.host) or {})["status"]["numa"]
    nodes = {
        int(each.name.removeprefix("node")): each
        for each in Path("/sys/devices/system/node").glob("node[0-9]*")
    }
    cpus = {number: (each / "cpulist").read_text().strip() for number, each in nodes.items()}
    assert {cell["node"]: cell["cpus"] for cell in numa} == cpus
    for cell in numa:
        _, _, _, kib, _ = (nodes[cell["node"]] / "meminfo").read_text().splitlines()[0].split()
        # A machine that is virtual itself may be given some or lose some at any time.
        assert abs(mib(cell["memory"]) - int(kib) // 1024) * 10 <= int(kib) // 1024


def test_the_host_tells_how_much_room_there_is_for_disks(real: LibvirtStage) -> None:
    """In every pool that is started, as libvirt tells somebody with virsh."""
    storage = (real.scene.api.host(real.host) or {})["status"]["storage"]
    pools = {each.name(): each for each in real.outside.listAllStoragePools() if each.isActive()}
    assert [each["name"] for each in storage] == sorted(pools)
    for each in storage:
        pools[each["name"]].refresh()
        _, capacity, _, available = pools[each["name"]].info()
        assert mib(each["capacity"]) == capacity // MIB
        assert 0 < mib(each["available"]) <= mib(each["capacity"])
        assert abs(mib(each["available"]) - available // MIB) <= MEANWHILE_MIB


def test_a_guest_that_does_not_listen_is_stopped_by_force(real: LibvirtStage) -> None:
    """After the grace period, which the event tells."""
    obj = real.deaf("deaf")
    real.patch("deaf", {"running": False})
    stopping = real.scene.until("deaf", lambda obj: bool(condition(obj, "Powered")))
    assert condition(stopping, "Powered")["reason"] == "Stopping"
    real.scene.until("deaf", lambda obj: obj["status"]["phase"] == "Stopped")
    assert real.domain(obj).state()[1] == libvirt.VIR_DOMAIN_SHUTOFF_DESTROYED
    assert "did not shut down within 4 s" in real.scene.until_event("deaf", "Forced")["message"]


def test_a_guest_that_dies_is_started_again_and_later_each_time(real: LibvirtStage) -> None:
    """Whoever wants it running gets it running; one that keeps dying does not keep us busy."""
    obj = real.deaf("mortal")
    pauses: list[float] = []
    for _ in range(3):
        domain = real.domain(obj)
        pid = qemu_pid(real, domain)
        os.kill(pid, signal.SIGKILL)
        begun = time.monotonic()
        eventually(
            lambda domain=domain, pid=pid: (
                domain.isActive() and qemu_pid(real, domain) not in (0, pid)
            ),
            lambda: f"it runs again: {real.scene.operator.log}",
        )
        pauses.append(time.monotonic() - begun)
        real.scene.until_running("mortal")
    assert pauses[2] > 3.5, pauses
    assert "it is started again" in real.scene.until_event("mortal", "Died")["message"]


def test_a_stopped_guest_that_others_start_is_stopped_again(real: LibvirtStage) -> None:
    """Stopped is what its owner asked for."""
    obj = real.deaf("quiet")
    real.patch("quiet", {"running": False})
    real.scene.until("quiet", lambda obj: obj["status"]["phase"] == "Stopped")
    real.domain(obj).create()
    eventually(lambda: not real.domain(obj).isActive(), lambda: real.scene.operator.log)


def test_a_definition_that_others_edit_is_set_right(real: LibvirtStage) -> None:
    """Size and shape alike, and the user hears of it."""
    obj = real.deaf("edited")
    domain = real.domain(obj)
    before = domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE)
    real.outside.defineXML(before.replace("<on_crash>destroy", "<on_crash>restart"))
    eventually(
        lambda: domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE) == before,
        lambda: f"shape: {domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE)}",
    )
    assert "was edited" in real.scene.until_event("edited", "Repaired")["message"]
    real.outside.defineXML(before.replace("<memory unit='KiB'>524288", "<memory unit='KiB'>262144"))
    eventually(
        lambda: domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE) == before,
        lambda: f"size: {domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE)}",
    )


def test_a_domain_that_others_remove_comes_back_with_its_disk(real: LibvirtStage) -> None:
    """The guest's data is not theirs to lose."""
    obj = real.deaf("undone")
    uid = obj["metadata"]["uid"]
    root = real.data_directory / "novacron" / f"{uid}-root.qcow2"
    inode = root.stat().st_ino
    domain = real.domain(obj)
    domain.undefine()
    domain.destroy()
    eventually(
        lambda: any(each.UUIDString() == uid for each in real.outside.listAllDomains()),
        lambda: real.scene.operator.log,
    )
    real.scene.until_running("undone")
    assert root.stat().st_ino == inode


def test_a_machine_whose_domain_others_removed_leaves_nothing_when_deleted(
    real: LibvirtStage,
) -> None:
    """Its disks are ours to remove even so."""
    obj = real.deaf("orphan", running=True)
    real.patch("orphan", {"running": False})
    real.scene.until("orphan", lambda obj: obj["status"]["phase"] == "Stopped")
    real.scene.operator.kill()
    try:
        real.domain(obj).undefine()
        real.scene.api.delete_machine(real.scene.namespace, "orphan")
    finally:
        real.scene.operator.start()
    real.scene.until_gone("orphan")
    assert real.left_behind() == (set(), set())


def test_what_can_change_at_once_does_and_the_rest_waits_for_a_restart_that_was_announced(
    real: LibvirtStage,
) -> None:
    """CPUs and disk grow under a running guest; memory cannot."""
    obj = real.deaf("growing")
    pid = qemu_pid(real, real.domain(obj))
    size = {"cpu": 2, "disk": "512Mi"}
    real.patch("growing", {"template": {"spec": {"resources": size}}})
    real.scene.until(
        "growing",
        lambda obj: (
            obj["status"]["resources"]["cpu"]["available"] == "2"
            and obj["status"]["resources"]["disk"]["available"] == "512Mi"
        ),
    )
    assert qemu_pid(real, real.domain(obj)) == pid, "the same guest"
    assert real.domain(obj).blockInfo("vda")[0] == 512 * 1024 * 1024

    real.patch("growing", {"template": {"spec": {"resources": {"memory": "640Mi"}}}})
    told = real.scene.until("growing", lambda obj: bool(condition(obj, "RestartRequired")))
    assert "memory" in condition(told, "RestartRequired")["message"]
    assert real.domain(obj).isActive()
    assert qemu_pid(real, real.domain(obj)) == pid, "said before it is done"
    real.scene.until(
        "growing", lambda obj: obj["status"]["resources"]["memory"]["available"] == "640Mi"
    )
    done = real.scene.until_running("growing")
    assert not condition(done, "RestartRequired")
    assert real.domain(obj).maxMemory() == 640 * 1024


def test_a_machine_that_may_not_be_away_is_never_restarted_by_us(real: LibvirtStage) -> None:
    """maxUnavailable 0 leaves the moment to its owner."""
    obj = real.deaf("steady")
    real.patch("steady", {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 0}}})
    pid = qemu_pid(real, real.domain(obj))
    real.patch("steady", {"template": {"spec": {"resources": {"memory": "640Mi"}}}})
    told = real.scene.until("steady", lambda obj: bool(condition(obj, "RestartRequired")))
    assert "left to you" in condition(told, "RestartRequired")["message"]
    time.sleep(8)  # longer than the notice before a restart
    assert qemu_pid(real, real.domain(obj)) == pid
    assert condition(real.scene.until_running("steady"), "RestartRequired")


@pytest.mark.full
def test_recreate_restarts_a_guest_at_once_and_without_it_the_restart_is_announced_first(
    real: LibvirtStage,
) -> None:
    """The one that changed later boots again while the other still has its five seconds."""
    more = {"template": {"spec": {"resources": {"memory": "640Mi"}}}}
    patient = real.deaf("patient")
    pid = qemu_pid(real, real.domain(patient))
    hurried = yaml.safe_load(EXAMPLE.read_text())
    hurried["metadata"]["namespace"] = real.scene.namespace
    hurried["spec"]["template"]["spec"]["nodeSelector"] = {"test/host": real.host}
    real.scene.api.create(hurried)
    uid = real.scene.until_running("impatient")["metadata"]["uid"]
    eventually(lambda: "boot=1" in said(real, uid), lambda: said(real, uid))
    real.patch("patient", more)
    real.scene.until("patient", lambda obj: bool(condition(obj, "RestartRequired")))
    real.patch("impatient", more)
    told = real.scene.until_event("impatient", "Restarting")
    assert "memory" in told["message"]
    waiting = real.scene.api.machine(real.scene.namespace, "patient") or {}
    assert "which follows" in condition(waiting, "RestartRequired")["message"]
    assert not condition(waiting, "Configured"), "it is not restarted yet"
    assert qemu_pid(real, real.domain(patient)) == pid
    eventually(lambda: "boot=2" in said(real, uid), lambda: said(real, uid))
    done = real.scene.until_running("impatient")
    assert not condition(done, "RestartRequired")
    assert real.domain(done).maxMemory() == 640 * 1024
    real.scene.until_event("patient", "Restarting")
