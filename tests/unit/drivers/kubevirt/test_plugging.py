"""Disks and interfaces that come and go: what is asked for by a request, and what is written."""

from dataclasses import replace
from typing import Any

from novacron.core.image import Media, Medium
from novacron.core.machine import MachinePlan, Nic
from novacron.core.volume import Attachment, Volume
from novacron.drivers.kubevirt.convert import template
from novacron.drivers.kubevirt.disks import seen_volume
from novacron.drivers.kubevirt.names import DISK, GROWN
from novacron.drivers.kubevirt.plugging import joined, plugs_of
from novacron.drivers.kubevirt.sameness import difference
from novacron.drivers.kubevirt.settings import Settings
from novacron.drivers.kubevirt.view import as_requested, by_name
from unit.drivers.kubevirt.instances import instance_of, machine_of
from unit.drivers.kubevirt.plans import plan

Object = dict[str, Any]
DATA = Volume("data", 10240, "fast")
POD, LAN = Nic("", name="eth0", mac="02:00:00:00:00:01"), Nic("lan", name="eth1")
BEFORE = plan(nics=(POD,), volumes=())
AFTER = replace(BEFORE, volumes=(DATA,))


def written(vm: Object, instance: Object | None, wanted: MachinePlan) -> Object:
    """Return the template that would be written."""
    asked = template(wanted)["spec"]
    return joined(vm, instance, asked, plugs_of(vm, instance, asked, Settings()))


def test_a_disk_is_asked_for_and_stays_out_of_the_template_that_is_written() -> None:
    """KubeVirt itself writes it there; a disk that somebody else wrote waits for a restart."""
    vm, instance = machine_of(BEFORE), instance_of(BEFORE)
    ((disk, volume),) = plugs_of(vm, instance, template(AFTER)["spec"], Settings()).more
    assert disk == {"name": "data", "disk": {"bus": "virtio"}}
    assert volume["persistentVolumeClaim"] == {"claimName": "web-data"}
    assert written(vm, instance, AFTER) == template(BEFORE)["spec"]


def test_a_disk_of_a_machine_that_is_off_is_simply_written() -> None:
    """Nobody has to be asked."""
    assert written(machine_of(BEFORE), None, AFTER) == template(AFTER)["spec"]


def test_a_request_that_is_under_way_is_not_made_again_and_is_no_drift() -> None:
    """Whoever looks meanwhile reads the template together with the requests."""
    vm, instance = machine_of(BEFORE), instance_of(BEFORE)
    source = {"persistentVolumeClaim": {"claimName": "web-data", "hotpluggable": True}}
    disk = {"name": "data", "disk": {"bus": "virtio"}}
    request = {"addVolumeOptions": {"name": "data", "disk": disk, "volumeSource": source}}
    vm["status"] = {"volumeRequests": [request]}
    assert plugs_of(vm, instance, template(AFTER)["spec"], Settings()).more == ()
    assert difference(as_requested(vm), template(AFTER)) is None
    vm["status"] = {"volumeRequests": [{"removeVolumeOptions": {"name": "root"}}]}
    assert as_requested(vm)["spec"]["volumes"] == []


def test_only_what_was_plugged_is_pulled_out_and_it_keeps_its_mark() -> None:
    """A mark that is taken off would be a change that needs a restart."""
    vm, instance = machine_of(AFTER), instance_of(AFTER)
    assert plugs_of(vm, instance, template(BEFORE)["spec"], Settings()).less == ()
    for spec in (vm["spec"]["template"]["spec"], instance["spec"]):
        by_name(spec["volumes"])["data"]["persistentVolumeClaim"]["hotpluggable"] = True
    assert plugs_of(vm, instance, template(BEFORE)["spec"], Settings()).less == ("data",)
    grown = replace(AFTER, user_data="#cloud-config\n")
    kept = by_name(written(vm, instance, grown)["volumes"])["data"]
    assert kept["persistentVolumeClaim"]["hotpluggable"] is True


def test_an_interface_goes_by_being_marked_absent_until_the_guest_let_go_of_it() -> None:
    """And what is marked so does not count as the machine's any more."""
    two = replace(BEFORE, nics=(POD, LAN))
    vm, instance = machine_of(two), instance_of(two)
    spec = written(vm, instance, BEFORE)
    nics = by_name(spec["domain"]["devices"]["interfaces"])
    assert nics["eth1"]["state"] == "absent"
    assert "eth1" in by_name(spec["networks"])
    vm["spec"]["template"]["spec"] = spec
    assert difference(as_requested(vm), template(BEFORE)) is None


def claim(size: str, capacity: str, note: str | None = None) -> Object:
    metadata = {"name": "web-root", "labels": {DISK: "root"}, "annotations": {GROWN: note}}
    spec = {"resources": {"requests": {"storage": size}}, "volumeMode": "Block"}
    return {"metadata": metadata, "spec": spec, "status": {"capacity": {"storage": capacity}}}


def test_a_disk_grows_until_the_guest_sees_it_and_then_its_file_system_has_to() -> None:
    """Three things grow one after the other: the volume, the device, the file system in it."""
    vm = machine_of(BEFORE)

    def seen(size: int, capacity: str, note: str | None = None) -> tuple[Attachment, str]:
        told = [{"name": "root", "size": size * 2**30}]
        instance = instance_of(BEFORE, volumeStatus=told)
        found = seen_volume(claim("40Gi", capacity, note), vm, instance)
        return found.attachment, found.note

    assert seen(20, "20Gi") == (Attachment.GROWING, "its storage makes the volume larger")
    growing, why = seen(20, "40Gi")
    assert growing is Attachment.GROWING
    assert "the guest does not see it yet" in why
    assert seen(40, "40Gi", "vmi-uid")[1].startswith("it grew while the guest ran")
    assert seen(40, "40Gi", "another") == (Attachment.ATTACHED, "")


def test_an_install_medium_is_a_drive_that_is_tried_after_the_disk() -> None:
    """What was installed starts; the installer starts while the disk is empty."""
    wanted = replace(BEFORE, media=Media(install=Medium("https://h/x.iso")))
    spec = template(wanted)["spec"]
    disks = by_name(spec["domain"]["devices"]["disks"])
    assert disks["iso"] == {"name": "iso", "cdrom": {"bus": "sata"}, "bootOrder": 2}
    assert disks["root"]["bootOrder"] == 1
    assert by_name(spec["volumes"])["iso"]["persistentVolumeClaim"] == {"claimName": "web-iso"}
    assert wanted.recipe != BEFORE.recipe
