"""The specification's own machine on a real host that has all it asks for, but no GPU."""

import re
import subprocess
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from pathlib import Path

import libvirt
import pytest
import yaml

from e2e.libvirt.conftest import DEAF, LibvirtStage
from e2e.libvirt.test_images import Cluster
from e2e.libvirt.test_real_machine import said as said_by
from e2e.libvirt.test_wires import Wired, wired  # noqa: F401 - a fixture
from e2e.test_placement import explained
from fleet import shared_fleet
from guest_images import built_in
from inside_guest import inside
from libvirt_daemon import add_pool
from machines import Object, condition, virtual_machine
from novacron.core.schedule import Schedule, due
from operators import eventually

MANIFEST = Path(__file__).parents[2] / "golden/spec-000-virtualmachine.yaml"
LABELS = {"node.novacron.io/type": "compute", "node.novacron.io/gpu": "true"}
# The machine is larger than the one it is tried on; its disks are sparse.
OVERCOMMIT = {"cpu": 16, "memory": 4, "disk": 100}
# Longer than an operator takes to start and look at everything.
A_WHILE = timedelta(seconds=20)
HOOKS = {
    "pre-start.sh": "echo started >>/root/said",
    "graceful-shutdown.sh": "echo leaves gracefully >/dev/ttyS0",
}


def image_with_hooks(directory: Path) -> bytes:
    """Return the built-in guest with the scripts that the manifest names."""
    disk, scripts = directory / "guest.raw", directory / "hooks"
    tiny = built_in("tiny")
    assert tiny is not None
    subprocess.run(["qemu-img", "convert", "-O", "raw", tiny, disk], check=True)
    scripts.mkdir()
    orders = ["mkdir /hooks"]
    for name, line in HOOKS.items():
        (scripts / name).write_text(f"#!/bin/sh\n{line}\nsync\n")
        orders += [f"write {scripts / name} /hooks/{name}", f"sif /hooks/{name} mode 0100755"]
    # The second entry of the table of partitions is the root's.
    start = int.from_bytes(disk.read_bytes()[446 + 16 + 8 : 446 + 16 + 12], "little") * 512
    subprocess.run(
        ["/usr/sbin/debugfs", "-w", "-f", "/dev/stdin", f"{disk}?offset={start}"],
        input="\n".join(orders),
        text=True,
        check=True,
        capture_output=True,
    )
    return disk.read_bytes()


def furnish(wired: Wired, directory: Path) -> Cluster:  # noqa: F811
    """Give the host what the manifest asks for, and the catalogue its image."""
    real = wired.stage
    add_pool(real.outside, "fast", directory / "fast")
    classes = [{"name": "fast-ssd", "pool": "fast"}]
    patch = {
        "spec": {
            "labels": LABELS,
            "overcommit": OVERCOMMIT,
            "libvirt": {"storageClasses": classes},
        }
    }
    real.scene.api.call("PATCH", f"/apis/novacron.io/v1alpha1/hosts/{real.host}", patch, merge=True)
    said = Cluster(real)
    url = real.images.add("ubuntu.raw", image_with_hooks(directory))
    said.catalogue(**{"ubuntu-22.04-lts": {"url": url}})
    return said


def add_other_hosts(real: LibvirtStage) -> list[str]:
    """Have two more real hosts: one with the labels and nothing else, one without them."""
    return [
        real.scene.add_host(
            driver="libvirt",
            endpoint=host.uri,
            labels=labels,
            overcommit=OVERCOMMIT,
            libvirt={"network": host.network},
            simulation=None,
        )
        for labels, host in zip((LABELS, {}), shared_fleet().hosts, strict=True)
    ]


@pytest.mark.timeout(600)
def test_the_specifications_machine_runs_with_all_it_asks_for(
    wired: Wired,  # noqa: F811
    tmp_path: Path,
) -> None:
    """Verbatim but for namespace and, in the end, the GPU that no host here has."""
    real = wired.stage
    said = furnish(wired, tmp_path)
    bare, unmarked = add_other_hosts(real)
    manifest = yaml.safe_load(MANIFEST.read_text())
    manifest["metadata"]["namespace"] = real.scene.namespace
    real.scene.api.create(manifest)
    missing = "lacks devices (needs 1 gpu nvidia tesla-t4, has none)"
    waiting = real.scene.until(
        "example-vm", lambda obj: missing in condition(obj, "Placed").get("message", "")
    )
    assert waiting["status"]["phase"] == "Pending"
    assert condition(waiting, "Placed")["message"] == (
        "0/3 hosts fit: 1 lacks labels node.novacron.io/gpu=true, node.novacron.io/type=compute, "
        f"1 has no storage class fast-ssd in storageClasses of the Host, 1 {missing}"
    )

    real.patch("example-vm", {"template": {"spec": {"devices": None}}})
    obj = real.scene.until_running("example-vm")
    assert obj["status"]["phase"] == "Running"
    assert obj["status"]["nodeName"] == real.host
    looks_right_inside(wired, obj)
    refused = {
        bare: "Storage: has no storage class fast-ssd in storageClasses of the Host",
        unmarked: "Selector: lacks labels node.novacron.io/gpu=true, node.novacron.io/type=compute",
    }
    is_explained(real, obj, refused)
    apart = another_stays_apart(real, manifest)
    assert apart["status"]["nodeName"] == bare
    refused = {
        real.host: "PodAntiAffinity: has machines with app=web-server, which it must be apart from",
        unmarked: "Selector: lacks label node.novacron.io/type=compute",
    }
    is_explained(real, apart, refused)
    has_its_snapshot(wired, obj)

    # It is deaf, so it is waited for before it is stopped by force: meanwhile the other one stops.
    real.scene.api.delete_machine(real.scene.namespace, "apart")
    real.patch("example-vm", {"running": False})
    real.scene.until("example-vm", lambda obj: obj["status"]["phase"] == "Stopped")
    assert "leaves gracefully" in said_by(real, obj["metadata"]["uid"])
    real.scene.api.delete_machine(real.scene.namespace, "example-vm")
    real.scene.until_gone("example-vm")
    pool = real.outside.storagePoolLookupByName("fast")
    (kept,) = (name for name in pool.listVolumes() if name.startswith("volume-"))
    pool.storageVolLookupByName(kept).delete()
    said.clear()


def another_stays_apart(real: LibvirtStage, manifest: Object) -> Object:
    """Have a small machine that may not be with the manifest's app, and return it.

    Its rule is the manifest's own but for the app, so it has no topologyKey and means hosts.
    """
    spec = manifest["spec"]["template"]
    affinity = deepcopy(spec["spec"]["affinity"])
    (rule,) = affinity["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    rule["labelSelector"]["matchLabels"] = spec["metadata"]["labels"]
    assert "topologyKey" not in rule
    body = virtual_machine(
        "apart",
        real.scene.namespace,
        memory="512Mi",
        disk="256Mi",
        nodeSelector={"node.novacron.io/type": "compute"},
        affinity=affinity,
    )
    # What its guest does is of no matter here.
    body["spec"]["template"]["spec"]["image"] = {"source": real.images.add("deaf.raw", DEAF)}
    real.scene.api.create(body)
    return real.scene.until_running("apart")


def is_explained(real: LibvirtStage, obj: Object, refused: dict[str, str]) -> None:
    """The command line says where a machine is with its scores there, and what refused it else."""
    name, place = obj["metadata"]["name"], obj["status"]["nodeName"]
    page = explained(real.scene, name)
    assert page.startswith(f"{name} is on host {place}\nwhen it was placed: ")
    scores = r"yes +\d\.\d\d +.*LeastAllocated \d\.\d\d, Balanced \d\.\d\d"
    assert re.search(rf"^{place} +{scores}", page, re.MULTILINE), page
    for host, why in refused.items():
        assert re.search(rf"^{host} +no +- +{re.escape(why)}$", page, re.MULTILINE), page


def looks_right_inside(wired: Wired, obj: Object) -> None:  # noqa: F811
    """Size, both interfaces, the data disk and the hook, as the guest sees them."""
    real = wired.stage
    domain = real.domain(obj)
    assert inside(domain, "cat /root/said") == "started", "it was ready only then"
    assert inside(domain, "nproc") == "4"
    assert int(inside(domain, "grep MemTotal /proc/meminfo").split()[1]) > 7 * 1024 * 1024
    sizes = inside(domain, "cat /sys/block/vda/size /sys/block/vdc/size").split()
    assert [int(sectors) * 512 >> 30 for sectors in sizes] == [100, 500]
    was_given_its_user_data(domain)
    obj = real.scene.until("example-vm", lambda obj: len(obj["status"].get("ipAddresses", [])) == 2)
    leased, static = obj["status"]["ipAddresses"]
    assert static == "10.0.1.10"
    assert leased in inside(domain, "ip -4 addr show dev eth0")
    eventually(
        lambda: inside(domain, "ping -c 1 -W 1 10.0.1.1 >/dev/null && echo yes") == "yes",
        lambda: inside(domain, "ip addr; ip route"),
    )


def was_given_its_user_data(domain: libvirt.virDomain) -> None:
    """Verbatim, on the disk that cloud-init looks for."""
    written = yaml.safe_load(MANIFEST.read_text())["spec"]["template"]["spec"]["userData"]
    mounted = "mkdir -p /tmp/seed; mount -o ro $(findfs LABEL=cidata) /tmp/seed"
    given = inside(domain, f"{mounted}; cat /tmp/seed/user-data; umount /tmp/seed")
    assert given == written.strip()
    assert "- ssh-rsa AAAAB3..." in given.splitlines()[-1]


def has_its_snapshot(wired: Wired, obj: Object) -> None:  # noqa: F811
    """At the cron time: the night is brought nearer, and then it is waited for."""
    real, now = wired.stage, datetime.now(UTC)
    nightly = Schedule(obj["spec"]["snapshotPolicy"]["schedule"])
    run, begins = nightly.next(now), due(nightly, obj["metadata"]["uid"], now, now).again
    assert run is not None
    assert begins is not None
    ahead = {"SECONDS_AHEAD": str((begins - now - A_WHILE).total_seconds())}
    later = ("operator_ahead", "operator", "run")
    with real.scene.operator.replaced(program=later, environment=ahead):
        obj = real.scene.until("example-vm", lambda obj: bool(obj["status"].get("snapshots")))
    (snapshot,) = obj["status"]["snapshots"]
    # By the clock of the host, which went on as ever; in whole seconds.
    made = datetime.fromisoformat(snapshot["createdAt"])
    assert made >= (now + A_WHILE).replace(microsecond=0), "not before its time"
    assert run.hour == 2
    assert snapshot["name"] == f"snapshot-{run:%Y%m%d-%H%M%S}"
    assert real.domain(obj).snapshotNum() == 1
