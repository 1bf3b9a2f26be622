"""Interfaces, media and hardware of a Machine, as drivers are asked for them."""

import re
import subprocess
import sys
from typing import Any

import pytest

from novacron.core.errors import Rejected
from novacron.core.image import Medium
from novacron.families.viti.hardware import hardware_of
from novacron.families.viti.mac import stable_mac
from novacron.families.viti.nics import Attachment, attachment_of, nics_of
from novacron.families.viti.resolve import is_ours, resolve, without_effect
from novacron.families.viti.values import Hardware, Nic, Resolved

UID = "0c9d2f41-0000-4000-8000-000000000001"
UNICAST_LOCAL = re.compile("^[0-9a-f][26ae](:[0-9a-f]{2}){5}$")


def obj(annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    metadata = {"name": "m", "uid": UID, "annotations": annotations or {}}
    return {"metadata": metadata, "spec": {"template": "small"} | spec}


def resolved(annotations: dict[str, str] | None = None, **spec: Any) -> Resolved:
    return resolve(obj(annotations, **spec), {})


def test_a_machine_without_networks_is_on_the_pod_network() -> None:
    """With an address that stays over restarts and moves."""
    (nic,) = nics_of({}, UID)
    assert nic == Nic("default", None, stable_mac(UID, "default"))


def test_addresses_stay_and_differ() -> None:
    """By machine and by interface; never those of a manufacturer, never a group's."""
    nics = nics_of({"networks": [{"name": "a", "networkName": "x"}, {"name": "b"}]}, UID)
    assert len({nic.mac for nic in nics}) == 2
    assert all(UNICAST_LOCAL.match(nic.mac) for nic in nics)
    assert nics == nics_of({"networks": [{"name": "a", "networkName": "x"}, {"name": "b"}]}, UID)
    assert stable_mac("another", "a") != nics[0].mac


def test_an_address_that_is_taken_is_not_given_again() -> None:
    """Somebody may have written down just what we would have made."""
    made = stable_mac(UID, "b")
    spec = {"networks": [{"name": "a", "macAddress": made.upper()}, {"name": "b"}]}
    first, second = nics_of(spec, UID)
    assert first.mac == made
    assert second.mac != made


def test_upstreams_network_is_one_interface() -> None:
    """On the NetworkConfiguration that its namespace is called by."""
    spec = {"network": {"networkNamespaceName": "prod", "interfaces": [{"name": "eth0"}]}}
    (nic,) = nics_of(spec, UID)
    assert (nic.name, nic.network) == ("eth0", "prod")


def test_a_network_is_a_vlan_on_a_bridge_or_what_is_there_already() -> None:
    """A VLAN alone is on br0, as upstream has it."""
    assert attachment_of("n", {"vlan": 7}) == Attachment(bridge="br0", vlan=7)
    assert attachment_of("n", {"bridge": "br1"}) == Attachment(bridge="br1")
    there = attachment_of("n", {"networkAttachmentDefinition": "lan"})
    assert there == Attachment(existing="lan")
    with pytest.raises(Rejected, match="says neither vlan nor bridge") as refusal:
        attachment_of("n", {})
    assert refusal.value.reason == "NetworkFailed"


ISO = {"source": "https://h/install.iso", "size": "2Gi"}


def test_a_medium_is_out_once_the_guest_is_installed() -> None:
    """By upstream's own annotations."""
    for mark in ("vitistack.io/os-installed", "vitistack.io/cdrom-ejected"):
        machine = resolved({mark: "true"}, iso=ISO)
        assert machine.ejected
    assert resolved(iso=ISO).iso == Medium("https://h/install.iso", size_mib=2048)
    assert not resolved({"vitistack.io/os-installed": "false"}, iso=ISO).ejected


def test_upstreams_media_are_found_in_either_word() -> None:
    """imageID counts only where the annotation says that it is a medium."""
    image = {"imageID": "https://h/x.iso"}
    assert resolved(os={"isoUri": "https://h/x.iso"}).iso == Medium("https://h/x.iso")
    assert resolved(os=image).iso is None
    datavolume = {"kubevirt.io/boot-source": "datavolume"}
    assert resolved(datavolume, os=image).iso == Medium("https://h/x.iso")
    registry = datavolume | {"kubevirt.io/boot-source-type": "registry"}
    found = resolved(registry, os={"imageID": "quay.example/iso"}).iso
    assert found == Medium("docker://quay.example/iso")


def test_hardware_is_what_was_asked_for_and_else_kubevirts_choice() -> None:
    """None is not false: KubeVirt's own defaults stay."""
    assert hardware_of({}) == Hardware()
    domain = {
        "machine": {"type": "pc-q35"},
        "features": {"acpi": False, "hyperv": True},
        "firmware": {"bootloader": {"efi": True, "secureBoot": True}},
    }
    wanted = Hardware("pc-q35", acpi=False, hyperv=True, efi=True, secure_boot=True)
    assert hardware_of({"domain": domain}) == wanted


def test_fields_that_change_nothing_are_named() -> None:
    """Taken, so that upstream's manifests apply, and not passed over in silence."""
    spec = {
        "name": "x",
        "tags": {"a": "b"},
        "monitoring": False,
        "disks": [{"name": "root", "iops": 500}],
        "network": {"vpc": "v", "interfaces": [{"primary": True}]},
    }
    fields = ["name", "tags", "network.vpc", "disks[].iops", "network.interfaces[].primary"]
    assert list(without_effect(spec)) == fields
    assert list(without_effect({})) == []


def test_machines_of_other_providers_are_left_alone() -> None:
    """Whoever runs both operators has one kind for both."""
    assert is_ours({})
    assert is_ours({"provider": "kubevirt"})
    assert not is_ours({"provider": "proxmox"})


def test_what_a_machine_means_is_found_out_without_its_types() -> None:
    """The running operator would carry their memory for nothing."""
    modules = ("resolve", "translate", "cloud_init", "addresses", "marks")
    names = ", ".join(f"novacron.families.viti.{each}" for each in modules)
    code = f"import sys, {names}; print('pydantic' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "False"
