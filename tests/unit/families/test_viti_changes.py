"""What a change of a running Machine costs, before it is made: KubeVirt's rules in one table."""

from dataclasses import replace
from typing import Any

import pytest

from novacron.families.viti.changes import Change, How, Standing, changes_between, told, worst
from novacron.families.viti.resolve import resolve
from novacron.families.viti.values import Resolved

BASE: dict[str, Any] = {
    "template": "medium",
    "disks": [{"name": "data", "size": "10Gi"}],
    "networks": [{"name": "eth0"}, {"name": "eth1", "networkName": "lan"}],
}
PLUGGED = Standing(plugged=frozenset({"data"}))
STUCK = Standing(migratable=False)
OLD_CLUSTER = Standing(live_update=False, volumes_pluggable=False, disks_expandable=False)
LAN, POD = {"name": "eth1", "networkName": "lan"}, {"name": "eth0"}
STORE = {"name": "eth2", "networkName": "store"}


def machine(**changes: Any) -> Resolved:
    metadata = {"name": "m", "uid": "1"}
    return resolve({"metadata": metadata, "spec": BASE | changes}, {})


def cpus(**said: int) -> dict[str, Any]:
    return {"resources": {"cpu": said}}


def memory(size: str) -> dict[str, Any]:
    return {"resources": {"memory": {"size": size}}}


def disks(*said: dict[str, Any]) -> dict[str, Any]:
    return {"disks": list(said)}


DATA, DATA_20 = {"name": "data", "size": "10Gi"}, {"name": "data", "size": "20Gi"}
LOGS = {"name": "logs", "size": "1Gi"}

COSTS: dict[str, tuple[dict[str, Any], Standing, How]] = {
    "more cpus": (cpus(cores=4), Standing(), How.MIGRATION),
    "four times the cpus": (cpus(cores=8), Standing(), How.MIGRATION),
    "more than four times": (cpus(cores=9), Standing(), How.RESTART),
    "more than was left room for": (cpus(cores=4), Standing(max_sockets=3), How.RESTART),
    "fewer cpus": (cpus(cores=1), Standing(), How.RESTART),
    "another topology": (cpus(cores=2, threads=2), Standing(), How.RESTART),
    "more cpus and cannot move": (cpus(cores=4), STUCK, How.RESTART),
    "more cpus on an old cluster": (cpus(cores=4), OLD_CLUSTER, How.RESTART),
    "more memory": (memory("8Gi"), Standing(), How.MIGRATION),
    "less memory": (memory("2Gi"), Standing(), How.RESTART),
    "back to what it was started with": (
        memory("2Gi"),
        Standing(memory_at_boot_mib=2048, max_memory_mib=8192),
        How.MIGRATION,
    ),
    "more memory than room": (memory("17Gi"), Standing(), How.RESTART),
    "memory of odd size": (memory("4097Mi"), Standing(), How.RESTART),
    "memory of a small guest": (memory("8Gi"), Standing(memory_at_boot_mib=512), How.RESTART),
    "more memory and cannot move": (memory("8Gi"), STUCK, How.RESTART),
    "larger disk": (disks(DATA_20), Standing(), How.LIVE),
    "larger disk on an old cluster": (disks(DATA_20), OLD_CLUSTER, How.RESTART),
    "smaller disk": (disks({"name": "data", "size": "1Gi"}), Standing(), How.NEVER),
    "disk of another class": (disks(DATA | {"storageClass": "x"}), Standing(), How.NEVER),
    "disk of another mode": (disks(DATA | {"volumeMode": "Block"}), Standing(), How.NEVER),
    "disk of another type": (disks(DATA | {"type": "scsi"}), Standing(), How.RESTART),
    "one disk more": (disks(DATA, LOGS), Standing(), How.LIVE),
    "one disk more that cannot move": (disks(DATA, LOGS), STUCK, How.LIVE),
    "one sata disk more": (disks(DATA, LOGS | {"type": "sata"}), Standing(), How.RESTART),
    "one disk more on an old cluster": (disks(DATA, LOGS), OLD_CLUSTER, How.RESTART),
    "one disk less": (disks(), Standing(), How.RESTART),
    "one disk less that was plugged in": (disks(), PLUGGED, How.LIVE),
    "what becomes of a disk": (disks(DATA | {"reclaimPolicy": "Retain"}), Standing(), How.LIVE),
    "another disk to boot from": (disks(DATA | {"boot": True}), Standing(), How.RESTART),
    "one interface more": ({"networks": [POD, LAN, STORE]}, Standing(), How.MIGRATION),
    "one in the middle": ({"networks": [POD, STORE, LAN]}, Standing(), How.RESTART),
    "one interface less": ({"networks": [POD]}, Standing(), How.MIGRATION),
    "one interface more and cannot move": ({"networks": [POD, LAN, STORE]}, STUCK, How.RESTART),
    "one e1000 more": (
        {"networks": [POD, LAN, STORE | {"model": "e1000"}]},
        Standing(),
        How.RESTART,
    ),
    "no pod network": ({"networks": [LAN]}, Standing(), How.RESTART),
    "another network": ({"networks": [POD, LAN | {"networkName": "x"}]}, Standing(), How.RESTART),
    "another mac": (
        {"networks": [POD, LAN | {"macAddress": "52:54:00:00:00:01"}]},
        Standing(),
        How.RESTART,
    ),
    "firmware": (
        {"domain": {"firmware": {"bootloader": {"efi": True}}}},
        Standing(),
        How.RESTART,
    ),
    "boot order": ({"bootOrder": ["network", "disk"]}, Standing(), How.RESTART),
    "boot order as it was": ({"bootOrder": ["disk", "network"]}, Standing(), How.LIVE),
    "same size in other words": (
        {"template": "small"}
        | {"resources": {"cpu": {"cores": 2}, "memory": {"size": "4096Mi"}}}
        | disks(DATA, {"name": "root", "sizeGB": 40}),
        Standing(),
        How.LIVE,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "standing", "how"), COSTS.values(), ids=COSTS)
def test_the_cost_of_a_change_is_known_before_it_is_made(changes, standing, how) -> None:
    """Nobody learns of a restart from an alarm."""
    assert worst(changes_between(machine(), machine(**changes), standing)) is how


def test_a_change_says_what_and_why_in_a_sentence() -> None:
    """What a condition tells."""
    found = changes_between(machine(), machine(**cpus(cores=1), **disks(DATA, LOGS)), Standing())
    assert [change.how for change in found] == [How.RESTART, How.LIVE]
    assert told(found) == (
        "2 to 1 CPUs (CPUs cannot be taken from a running guest); disk logs of 1Gi more"
    )


def test_a_medium_goes_with_a_restart() -> None:
    """Ejected or taken off the spec, it is the same."""
    iso = {"source": "https://h/x.iso"}
    before = machine(iso=iso, bootOrder=["disk", "cdrom"])
    for after in (replace(before, ejected=True), machine(bootOrder=["disk", "cdrom"])):
        (change,) = changes_between(before, after, Standing())
        assert change == Change(
            "install medium", How.RESTART, "it is there from one start to the next"
        )
