"""Volumes of real guests: seen from inside, plugged in, grown, let go, kept and deleted."""

import base64
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import libvirt
import libvirt_qemu
import pytest
import yaml

from e2e.libvirt.conftest import LibvirtStage
from e2e.libvirt.test_real_machine import qemu_pid
from libvirt_daemon import add_pool
from machines import Object, condition
from operators import eventually

EXAMPLE = Path(__file__).parents[3] / "examples/22-volumes.yaml"


def asked(domain: libvirt.virDomain, command: str, **arguments: object) -> Object:
    """Return what a guest's agent answers; nothing while it does not."""
    question = json.dumps({"execute": command, "arguments": arguments})
    try:
        answer: Object = json.loads(libvirt_qemu.qemuAgentCommand(domain, question, 5, 0))
    except libvirt.libvirtError:
        return {}
    return answer


def inside(domain: libvirt.virDomain, script: str) -> str:
    """Return what a script says inside a guest whose agent answers."""
    arguments = {"path": "/bin/sh", "arg": ["-c", script], "capture-output": True}
    eventually(lambda: bool(asked(domain, "guest-ping")) or None, lambda: "its agent answers")
    pid = asked(domain, "guest-exec", **arguments)["return"]["pid"]
    ended: list[Object] = []

    def has_ended() -> bool:
        told = asked(domain, "guest-exec-status", pid=pid).get("return") or {}
        ended.append(told)
        return bool(told.get("exited"))

    eventually(has_ended, lambda: f"{script}: {ended[-1:]}")
    return base64.b64decode(ended[-1].get("out-data", "")).decode()


def volumes(obj: Object) -> dict[str, tuple[str, str]]:
    """Return size and state of each volume."""
    entries = obj["status"].get("volumes") or []
    return {each["name"]: (each["size"], each["state"]) for each in entries}


def test_a_guest_finds_its_volumes_by_name_and_keeps_its_data(real: LibvirtStage) -> None:
    """One boot for all that needs a guest: the example, and what is done to it afterwards."""
    body = yaml.safe_load(EXAMPLE.read_text())
    body["metadata"]["namespace"] = real.scene.namespace
    template = body["spec"]["template"]["spec"]
    template["nodeSelector"] = {"test/host": real.host}
    template["resources"] |= {"memory": "512Mi", "disk": "256Mi"}
    template["volumes"] = [
        {**each, "size": "64Mi"} for each in template["volumes"] if "storageClass" not in each
    ]
    obj = real.scene.api.create(body)
    name = obj["metadata"]["name"]
    obj = real.scene.until_running(name)
    domain = real.domain(obj)
    pid = qemu_pid(real, domain)
    assert volumes(obj) == {"data": ("64Mi", "Attached"), "scratch": ("64Mi", "Attached")}
    found = inside(domain, "cat /sys/class/block/vdc/serial; echo; cat /sys/class/block/vdd/serial")
    assert sorted(found.split()) == ["data", "scratch"]
    inside(domain, "mke2fs /dev/vdc; mkdir /mnt/a; mount /dev/vdc /mnt/a; echo kept >/mnt/a/file")

    # This guest grows its root by itself; that it is told through its agent too shows here.
    inside(
        domain,
        "printf '#!/bin/sh\\necho $* >>/tmp/told\\n' >/bin/growpart; chmod +x /bin/growpart",
    )
    # It puts CPUs on line by itself too, unless it is kept from that.
    inside(domain, "sed -i /add:cpu/d /lib/tiny/hotplug")
    assert inside(domain, "nproc").strip() == "1"
    template["volumes"][0]["size"] = "128Mi"
    template["volumes"].append({"name": "late", "size": "32Mi"})
    change = {"volumes": template["volumes"], "resources": {"disk": "320Mi", "cpu": 2}}
    real.patch(name, {"template": {"spec": change}})
    real.scene.until(name, lambda obj: volumes(obj).get("late") == ("32Mi", "Attached"))
    eventually(
        lambda: int(inside(domain, "df -m /mnt/a | tail -1").split()[1]) > 100,
        lambda: inside(domain, "df -m"),
    )
    eventually(
        lambda: int(inside(domain, "df -m / | tail -1").split()[1]) > 256,
        lambda: inside(domain, "df -m"),
    )
    # The root is on the second partition of the first disk; the volume has no partitions.
    eventually(
        lambda: set(inside(domain, "cat /tmp/told").splitlines()) == {"/dev/vda 2"},
        lambda: f"its agent was told of the root alone: {inside(domain, 'cat /tmp/told')}",
    )
    eventually(
        lambda: inside(domain, "nproc").strip() == "2",
        lambda: inside(domain, "grep . /sys/devices/system/cpu/cpu*/online"),
    )
    assert inside(domain, "cat /sys/class/block/vde/serial") == "late"
    inside(domain, "umount /mnt/a")

    real.patch(name, {"template": {"spec": {"volumes": template["volumes"][1:]}}})
    obj = real.scene.until(name, lambda obj: volumes(obj)["data"] == ("128Mi", "Detached"))
    eventually(lambda: "vdc" not in inside(domain, "ls /sys/class/block"), lambda: "vdc is gone")
    real.patch(name, {"template": {"spec": {"volumes": template["volumes"]}}})
    real.scene.until(name, lambda obj: volumes(obj)["data"] == ("128Mi", "Attached"))
    eventually(
        lambda: "kept" in inside(domain, "mount /dev/vdc /mnt/a; cat /mnt/a/file"),
        lambda: inside(domain, "ls /mnt/a"),
    )
    assert qemu_pid(real, domain) == pid, "the same guest all the time"
    _delete_and_look_what_is_kept(real, obj)


def _delete_and_look_what_is_kept(real: LibvirtStage, obj: Object) -> None:
    """Delete, and find those that were to stay in the host's status; then they go too."""
    name = obj["metadata"]["name"]
    ids = {each["name"]: each["id"] for each in obj["status"]["volumes"]}
    real.scene.api.delete_machine(real.scene.namespace, name)
    real.scene.until_gone(name)
    domains, files = real.left_behind()
    assert domains == set()
    kept = {ids["data"], ids["late"]}
    assert files == {f"volume-{real.scene.namespace}.{one}.qcow2" for one in kept}
    # A host is asked for what it keeps only now and then; a change has it asked at once.
    real.scene.api.patch_host(real.host, {"spec": {"labels": {"looked": "at"}}})
    real.scene.until_host(
        real.host,
        lambda host: {each["id"] for each in host["status"].get("keptVolumes") or []} == kept,
    )
    pool = real.outside.storagePoolLookupByName("novacron")
    for file in files:
        pool.storageVolLookupByName(file).delete()


@pytest.fixture
def shelf() -> Iterator[Path]:
    """A directory that any user may look into, as that of a guest on a real host has to."""
    with tempfile.TemporaryDirectory(prefix="novacron-shelf-") as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


def test_a_storage_class_is_a_pool_of_the_host(real: LibvirtStage, shelf: Path) -> None:
    """A condition says what to set; a volume that vanishes is missed, and not replaced."""
    obj = real.deaf("classy")
    fast = {"name": "fast", "size": "64Mi", "storageClass": "fast-ssd", "reclaimPolicy": "Delete"}
    real.patch("classy", {"template": {"spec": {"volumes": [fast]}}})
    told = real.scene.until("classy", lambda obj: bool(condition(obj, "Configured")))
    assert condition(told, "Configured")["reason"] == "StorageClassUnknown"
    assert "fast-ssd" in condition(told, "Configured")["message"]
    assert "spec.libvirt.storageClasses" in condition(told, "Configured")["message"]
    real.patch("classy", {"running": False})
    real.scene.until("classy", lambda obj: obj["status"]["phase"] == "Stopped")
    assert not real.domain(obj).isActive(), "it is off, whatever else is refused"
    real.patch("classy", {"running": True})

    pool = add_pool(real.outside, "ssd", shelf / "ssd")
    try:
        classes = {"libvirt": {"storageClasses": [{"name": "fast-ssd", "pool": "ssd"}]}}
        real.scene.api.patch_host(real.host, {"spec": classes})
        real.scene.until("classy", lambda obj: volumes(obj) == {"fast": ("64Mi", "Attached")})
        file = next((shelf / "ssd").glob("volume-*"))
        assert file.name.startswith(f"volume-{real.scene.namespace}.classy.fast-")

        told = real.scene.until_host(real.host, lambda obj: "storageClasses" in obj["status"])
        room = told["status"]["storageClasses"][0]["allocatable"]
        more = {"name": "more", "size": room, "storageClass": "fast-ssd"}
        real.patch("classy", {"template": {"spec": {"volumes": [fast, more]}}})
        told = real.scene.until("classy", lambda obj: condition(obj, "Placed")["status"] == "False")
        assert "lacks storage of class fast-ssd" in condition(told, "Placed")["message"]
        assert volumes(told) == {"fast": ("64Mi", "Attached")}
        real.patch("classy", {"template": {"spec": {"volumes": [fast]}}})
        real.scene.until("classy", lambda obj: condition(obj, "Placed")["status"] == "True")

        file.rename(shelf / "elsewhere")
        pool.refresh()
        told = real.scene.until("classy", lambda obj: bool(condition(obj, "Configured")))
        assert condition(told, "Configured")["reason"] == "VolumeLost"
        assert not file.exists(), "nothing empty is put in its place"
        (shelf / "elsewhere").rename(file)
        pool.refresh()
        real.scene.until_running("classy")
        assert real.domain(obj).isActive()
        real.scene.api.delete_machine(real.scene.namespace, "classy")
        real.scene.until_gone("classy")
        assert not list((shelf / "ssd").glob("volume-*"))
    finally:
        pool.destroy()
        pool.undefine()


def test_memory_grows_under_a_running_guest(real: LibvirtStage) -> None:
    """Up to twice what it was started with; what does not go into whole blocks needs a restart."""
    obj = real.deaf("spacious", memory="1Gi")
    domain = real.domain(obj)
    pid = qemu_pid(real, domain)
    real.patch("spacious", {"template": {"spec": {"resources": {"memory": "1280Mi"}}}})
    done = real.scene.until(
        "spacious", lambda obj: obj["status"]["resources"]["memory"]["available"] == "1280Mi"
    )
    assert not condition(done, "RestartRequired")
    time.sleep(6)  # longer than the notice before a restart
    assert qemu_pid(real, domain) == pid
    assert "<memory model='dimm'>" in domain.XMLDesc()
    real.patch("spacious", {"template": {"spec": {"resources": {"memory": "1300Mi"}}}})
    told = real.scene.until("spacious", lambda obj: bool(condition(obj, "RestartRequired")))
    assert "memory" in condition(told, "RestartRequired")["message"]
