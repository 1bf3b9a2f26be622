"""Disks of guests that are played: their names in the guest, their sizes, and hot-plugged ones."""

from novacron.localcluster.kubevirt.standin.quantity import amount
from novacron.runtime.resource import Object

__all__ = ["set_disks"]

LETTERS = "abcdefghijklmnopqrstuvwxyz"
PREFIXES = {"virtio": "vd", "usb": "sd", "sata": "sd", "scsi": "sd"}
MOUNTABLE = ("", "Bound", "Pending", "AttachedToNode")


def set_disks(instance: Object) -> None:
    """Say of each volume where the guest sees it, and how large."""
    devices = instance["spec"]["domain"]["devices"]
    targets = _targets(devices.get("disks") or ())
    wanted = {volume["name"] for volume in instance["spec"].get("volumes") or ()}
    for volume in instance["status"].get("volumeStatus") or ():
        name = volume["name"]
        if "hotplugVolume" in volume:
            _plug(volume, targets.get(name, ""), wanted=name in wanted)
        elif name in targets:
            volume["target"] = targets[name]
        info = volume.get("persistentVolumeClaimInfo") or {}
        capacity = (info.get("capacity") or {}).get("storage")
        if capacity and volume.get("target"):
            volume["size"] = int(amount(capacity))


def _plug(volume: Object, target: str, *, wanted: bool) -> None:
    """Take the next step of plugging a disk into the running guest, or of pulling it out."""
    phase, name = volume.get("phase", ""), volume["name"]
    if wanted and phase == "MountedToPod":
        said = f"Successfully attach hotplugged volume {name} to VM"
        volume |= {"phase": "Ready", "reason": "VolumeReady", "message": said, "target": target}
    elif wanted and phase in MOUNTABLE and volume["hotplugVolume"].get("attachPodUID"):
        said = f"Volume {name} has been mounted in virt-launcher pod"
        volume |= {"phase": "MountedToPod", "reason": "VolumeMountedToPod", "message": said}
    elif not wanted and phase in ("Ready", "MountedToPod", "AttachedToNode"):
        said = f"Volume {name} has been unmounted from virt-launcher pod"
        volume |= {"phase": "UnMountedFromPod", "reason": "VolumeUnMountedFromPod"}
        volume |= {"message": said, "target": ""}


def _targets(disks: list[Object] | tuple[()]) -> dict[str, str]:
    """Return the names that the disks have in the guest, in the order of the specification."""
    counts: dict[str, int] = {}
    targets: dict[str, str] = {}
    for disk in disks:
        kind = next((disk[each] for each in ("disk", "cdrom", "lun") if each in disk), None)
        prefix = PREFIXES.get((kind or {}).get("bus") or "sata", "sd")
        targets[disk["name"]] = f"{prefix}{LETTERS[counts.get(prefix, 0) % len(LETTERS)]}"
        counts[prefix] = counts.get(prefix, 0) + 1
    return targets
