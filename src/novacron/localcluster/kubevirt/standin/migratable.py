"""Whether a guest could be migrated live: virt-handler's own rules, as far as they matter here."""

from novacron.localcluster.kubevirt.standin.world import now
from novacron.runtime.resource import Object

__all__ = ["drop_condition", "set_condition", "set_migratable"]

SHARED = "ReadWriteMany"
BRIDGED = (
    "cannot migrate VMI which does not use masquerade, bridge with "
    "kubevirt.io/allow-pod-bridge-network-live-migration VM annotation or a migratable plugin "
    "to connect to the pod network"
)
UNSHARED = (
    "cannot migrate VMI: PVC {} is not shared, live migration requires that all PVCs must be "
    "shared (using ReadWriteMany access mode)"
)


def set_migratable(instance: Object) -> None:
    """Say whether the instance can be migrated, and how."""
    reason, message = _hindrance(instance)
    set_condition(instance, "LiveMigratable", "False" if reason else "True", reason, message)
    storage = "False" if reason == "InterfaceNotLiveMigratable" else "True"
    note = f"{reason}: {message}" if storage == "False" else ""
    because = "NotMigratable" if note else ""
    set_condition(instance, "StorageLiveMigratable", storage, because, note)
    instance["status"]["migrationMethod"] = (
        "BlockMigration" if _blocks(instance) else "LiveMigration"
    )


def set_condition(
    instance: Object, kind: str, status: str, reason: str = "", message: str = ""
) -> None:
    """Set a condition; one that says the same already stays as it is."""
    conditions = instance["status"].setdefault("conditions", [])
    before = next((each for each in conditions if each["type"] == kind), None)
    said = (status, reason, message)
    if before and (before["status"], before.get("reason", ""), before.get("message", "")) == said:
        return
    # Without the time of the probe virt-controller's own patches never match.
    times = {"lastProbeTime": now(), "lastTransitionTime": now()}
    condition = {"type": kind, "status": status, **times}
    condition |= {k: v for k, v in (("reason", reason), ("message", message)) if v}
    instance["status"]["conditions"] = [c for c in conditions if c is not before] + [condition]


def drop_condition(instance: Object, kind: str) -> None:
    """Take a condition away."""
    conditions = instance["status"].get("conditions") or []
    instance["status"]["conditions"] = [each for each in conditions if each["type"] != kind]


def _hindrance(instance: Object) -> tuple[str, str]:
    devices = instance["spec"]["domain"]["devices"]
    if _is_bridged_to_pod(instance):
        return "InterfaceNotLiveMigratable", BRIDGED
    if devices.get("hostDevices") or devices.get("gpus"):
        return "HostDeviceNotLiveMigratable", "VMI uses a PCI host devices"
    if claim := _unshared(instance):
        return "DisksNotLiveMigratable", UNSHARED.format(claim)
    return "", ""


def _is_bridged_to_pod(instance: Object) -> bool:
    networks = instance["spec"].get("networks") or ()
    on_pod = {network["name"] for network in networks if "pod" in network}
    interfaces = instance["spec"]["domain"]["devices"].get("interfaces") or ()
    return any(each["name"] in on_pod and "bridge" in each for each in interfaces)


def _unshared(instance: Object) -> str | None:
    told = {each["name"]: each for each in instance["status"].get("volumeStatus") or ()}
    for volume in instance["spec"].get("volumes") or ():
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        claim = claim or (volume.get("dataVolume") or {}).get("name")
        info = (told.get(volume["name"]) or {}).get("persistentVolumeClaimInfo") or {}
        if claim and SHARED not in (info.get("accessModes") or ()):
            return str(claim)
    return None


def _blocks(instance: Object) -> bool:
    """Say whether some disk is the pod's own, and so has to be copied along."""
    shared = ("persistentVolumeClaim", "dataVolume")
    volumes = instance["spec"].get("volumes") or ()
    return any(not any(kind in volume for kind in shared) for volume in volumes)
