"""What the stand-in says, where no cluster is needed to see it."""

from typing import Any

import pytest

from novacron.localcluster.kubevirt.standin.disks import set_disks
from novacron.localcluster.kubevirt.standin.migratable import set_condition, set_migratable
from novacron.localcluster.kubevirt.standin.quantity import amount
from novacron.localcluster.kubevirt.standin.world import Addresses
from novacron.runtime.resource import Key


def instance(**devices: Any) -> dict[str, Any]:
    """An instance with one claim, as virt-controller leaves it."""
    info = {"accessModes": ["ReadWriteMany"], "capacity": {"storage": "1Gi"}}
    return {
        "spec": {
            "domain": {"devices": {"disks": [{"name": "root", "disk": {"bus": "virtio"}}]}}
            | ({"devices": devices} if devices else {}),
            "networks": [{"name": "default", "pod": {}}],
            "volumes": [{"name": "root", "persistentVolumeClaim": {"claimName": "root"}}],
        },
        "status": {"volumeStatus": [{"name": "root", "persistentVolumeClaimInfo": info}]},
    }


def verdict(given: dict[str, Any]) -> tuple[str, str]:
    """Whether it can be migrated, and why not."""
    set_migratable(given)
    found = next(c for c in given["status"]["conditions"] if c["type"] == "LiveMigratable")
    return found["status"], found.get("reason", "")


@pytest.mark.parametrize(
    ("text", "number"), [("1Gi", 2**30), ("1500m", 1.5), ("2G", 2e9), ("7", 7), ("1Ki", 1024)]
)
def test_quantities_are_numbers(text: str, number: float) -> None:
    assert amount(text) == number


def test_no_two_pods_have_one_address() -> None:
    """Also when their identities fall on the same place."""
    addresses = Addresses()
    first = addresses.of(Key("a", "one"), "the same")
    assert addresses.of(Key("a", "two"), "the same") != first
    assert addresses.of(Key("a", "one"), "the same") == first


def test_a_bridge_to_the_pod_network_stands_in_the_way() -> None:
    assert verdict(instance()) == ("True", "")
    bridged = instance(interfaces=[{"name": "default", "bridge": {}}])
    assert verdict(bridged) == ("False", "InterfaceNotLiveMigratable")


def test_a_device_of_the_host_stands_in_the_way() -> None:
    assert verdict(instance(gpus=[{"name": "g"}])) == ("False", "HostDeviceNotLiveMigratable")


def test_a_condition_that_says_the_same_stays_untouched() -> None:
    """Otherwise each look would be a write, and each write a look."""
    given = instance()
    set_condition(given, "Ready", "True")
    before = given["status"]["conditions"][0]
    set_condition(given, "Ready", "True")
    assert given["status"]["conditions"] == [before]
    assert before["lastProbeTime"]


def test_a_disk_is_plugged_in_step_by_step_and_pulled_out() -> None:
    given = instance()
    volume = given["status"]["volumeStatus"][0]
    volume |= {"hotplugVolume": {"attachPodUID": "1"}, "phase": "AttachedToNode", "target": ""}
    set_disks(given)
    assert volume["phase"] == "MountedToPod"
    set_disks(given)
    assert (volume["phase"], volume["target"], volume["size"]) == ("Ready", "vda", 2**30)
    given["spec"]["volumes"] = []
    set_disks(given)
    assert volume["phase"] == "UnMountedFromPod"
