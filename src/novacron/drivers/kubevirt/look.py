"""What a cluster's objects say of a machine, in the core's words.

Pure: objects in, an observation out.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import orjson

from novacron.core.conditions import Condition
from novacron.core.machine import Hindrance, Observed, Power, Resources
from novacron.core.quantity import mib
from novacron.core.volume import Attachment, SeenVolume
from novacron.drivers.kubevirt.cluster import Belongings
from novacron.drivers.kubevirt.names import APPLIED, DISK, RECIPE, UID
from novacron.drivers.kubevirt.sameness import difference

__all__ = ["condition", "observed", "storage_part"]

Object = dict[str, Any]

# The cluster tells of every change; this is for what may be missed all the same.
PATIENCE = timedelta(seconds=60)
ENDED = ("Succeeded", "Failed")
UNSCHEDULABLE = "ErrorUnschedulable"
# What KubeVirt says of a machine that does not come up, and what a user can do about it.
FAILING = {
    "CrashLoopBackOff": "its guest ends as soon as it is started: look at its console",
    "ErrorPvcNotFound": "a disk's claim is missing and is made again",
    "ErrorDataVolumeNotFound": "the import of its image is missing",
    "DataVolumeError": "the import of its image failed: look at its DataVolume",
    "ErrImagePull": "an image cannot be pulled: check its name and the registry",
    "ImagePullBackOff": "an image cannot be pulled: check its name and the registry",
}
STORAGE, NETWORK, MACHINE = "StorageReady", "NetworkReady", "VirtualMachineReady"


def observed(has: Belongings) -> Observed | None:
    """Return how a machine is; None when there is neither it nor an instance of it."""
    vm, vmi = has.machine, has.instance
    shown = vm or vmi
    if shown is None:
        return None
    power, changing = _power(vm, vmi)
    hindered = _hindrance(vm, vmi, has.claims) if changing == "start" else None
    configured = _configured(vm or {}, has.claims)
    runs = _current(vmi, configured) if vmi and power is Power.ON else configured
    movable = condition(vmi, "LiveMigratable")
    return Observed(
        uid=shown["metadata"]["labels"][UID],
        vm_id=shown["metadata"]["uid"],
        power=power,
        resources=runs,
        changing=changing,
        addresses=_addresses(vmi),
        live_migratable=True,
        immovable=movable.get("message") if movable.get("status") == "False" else None,
        due=PATIENCE if changing else None,
        after_restart=configured if configured != runs else None,
        awaits_restart=_awaits_restart(vm, vmi) if power is Power.ON and not changing else (),
        recipe=(shown["metadata"].get("annotations") or {}).get(RECIPE) if vm else None,
        drifted=_drifted(vm) if vm else None,
        ended=_ended(vmi),
        volumes=tuple(_volume(claim, vm) for claim in has.claims if not _is_first(claim, vm)),
        node=(vmi or {}).get("status", {}).get("nodeName"),
        parts=_parts(has, hindered),
        hindered=hindered,
    )


def condition(obj: Object | None, name: str) -> Mapping[str, str]:
    """Return what an object says under a name; nothing where it says nothing."""
    claims = ((obj or {}).get("status") or {}).get("conditions") or ()
    return next((each for each in claims if each["type"] == name), {})


def storage_part(claims: tuple[Object, ...]) -> Condition:
    """Say whether every disk has its place."""
    waiting = [claim for claim in claims if (claim.get("status") or {}).get("phase") != "Bound"]
    if not waiting:
        return Condition(STORAGE, "True", "PVCBound", f"{len(claims)} claims are bound")
    names = ", ".join(claim["metadata"]["name"] for claim in waiting)
    message = f"not bound yet: {names}; kubectl describe pvc says what they wait for"
    return Condition(STORAGE, "False", "PVCPending", message)


def _power(vm: Object | None, vmi: Object | None) -> tuple[Power, str | None]:
    """Return whether a machine runs, and what is being done about it."""
    if vm is None or "deletionTimestamp" in vm["metadata"]:
        return (Power.ON if vmi else Power.OFF), "delete"
    phase = ((vmi or {}).get("status") or {}).get("phase")
    wanted = vm["spec"].get("runStrategy") != "Halted"
    if vmi is None or phase in ENDED:
        return Power.OFF, "start" if wanted else None
    if "deletionTimestamp" in vmi["metadata"] or not wanted:
        return Power.ON, "stop"
    return (Power.ON, None) if phase == "Running" else (Power.OFF, "start")


def _hindrance(
    vm: Object | None, vmi: Object | None, claims: tuple[Object, ...]
) -> Hindrance | None:
    state = ((vm or {}).get("status") or {}).get("printableStatus", "")
    scheduled = condition(vmi, "PodScheduled")
    if state == UNSCHEDULABLE or scheduled.get("reason") == "Unschedulable":
        said = scheduled.get("message") or condition(vm, "Ready").get("message") or state
        return Hindrance(
            "InsufficientResources",
            f"no node of the cluster can run it: {said}; add nodes or ask for less",
        )
    if state in FAILING:
        return Hindrance("VMFailed", f"{state}: {FAILING[state]}")
    failure = condition(vm, "Failure")
    if failure.get("status") == "True":
        return Hindrance("VMFailed", failure.get("message") or failure.get("reason", ""))
    lost = [each for each in claims if (each.get("status") or {}).get("phase") == "Lost"]
    if lost:
        name = lost[0]["metadata"]["name"]
        return Hindrance("PVCLost", f"the volume behind claim {name} is gone: restore it")
    return None


def _configured(vm: Object, claims: tuple[Object, ...]) -> Resources:
    """Return what the machine is set to have."""
    domain = vm.get("spec", {}).get("template", {}).get("spec", {}).get("domain", {})
    cpu, guest = domain.get("cpu") or {}, (domain.get("memory") or {}).get("guest", 0)
    first = next((claim for claim in claims if _is_first(claim, vm)), None)
    asked = first["spec"]["resources"]["requests"]["storage"] if first else 0
    return Resources(_vcpus(cpu), mib(guest), mib(asked))


def _current(vmi: Object, configured: Resources) -> Resources:
    """Return what the guest has by now."""
    status = vmi.get("status") or {}
    cpu = status.get("currentCPUTopology") or vmi["spec"]["domain"].get("cpu") or {}
    memory = (status.get("memory") or {}).get("guestCurrent") or (
        vmi["spec"]["domain"].get("memory") or {}
    ).get("guest")
    return Resources(
        _vcpus(cpu) or configured.vcpus,
        mib(memory) if memory else configured.memory_mib,
        configured.disk_mib,
    )


def _vcpus(cpu: Mapping[str, Any]) -> int:
    return int(cpu.get("sockets", 1)) * int(cpu.get("cores", 1)) * int(cpu.get("threads", 1))


def _addresses(vmi: Object | None) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for each in ((vmi or {}).get("status") or {}).get("interfaces") or ():
        for address in each.get("ipAddresses") or (each.get("ipAddress"),):
            if address:
                found[address] = None
    return tuple(found)


def _awaits_restart(vm: Object | None, vmi: Object | None) -> tuple[str, ...]:
    """Return what of a change only a restart brings about."""
    required = condition(vm, "RestartRequired")
    if vm is None or vmi is None or required.get("status") != "True":
        return ()
    # It is said of the instance before for a moment after a restart.
    if required.get("lastTransitionTime", "") < vmi["metadata"]["creationTimestamp"]:
        return ()
    wants, has = vm["spec"]["template"]["spec"], vmi["spec"]
    names = [
        word
        for word, path in (
            ("the CPUs", ("domain", "cpu")),
            ("the memory", ("domain", "memory")),
            ("the disks", ("domain", "devices", "disks")),
            ("the interfaces", ("domain", "devices", "interfaces")),
            ("the firmware", ("domain", "firmware")),
            ("the networks", ("networks",)),
            ("the disks", ("volumes",)),
        )
        if difference(_at(has, path), _at(wants, path)) is not None
    ]
    return tuple(dict.fromkeys(names)) or ("its template",)


def _at(spec: Object, path: tuple[str, ...]) -> object:
    found: object = spec
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _drifted(vm: Object) -> str | None:
    applied = (vm["metadata"].get("annotations") or {}).get(APPLIED)
    if not applied:
        return "somebody took our record off its VirtualMachine"
    where = difference(vm["spec"]["template"], orjson.loads(applied))
    return None if where is None else f"somebody changed {where} of its VirtualMachine"


def _ended(vmi: Object | None) -> str | None:
    phase = ((vmi or {}).get("status") or {}).get("phase")
    return {"Succeeded": "its guest shut down", "Failed": "its guest failed"}.get(phase or "")


def _is_first(claim: Object, vm: Object | None) -> bool:
    volumes = ((vm or {}).get("spec") or {}).get("template", {}).get("spec", {}).get("volumes")
    disk = claim["metadata"]["labels"].get(DISK)
    return bool(volumes) and volumes[0]["name"] == disk


def _volume(claim: Object, vm: Object | None) -> SeenVolume:
    name = claim["metadata"]["labels"].get(DISK, "")
    volumes = ((vm or {}).get("spec") or {}).get("template", {}).get("spec", {}).get("volumes")
    attached = any(each["name"] == name for each in volumes or ())
    return SeenVolume(
        name=name,
        size_mib=mib(claim["spec"]["resources"]["requests"]["storage"]),
        attachment=Attachment.ATTACHED if attached else Attachment.DETACHED,
        id=claim["metadata"]["name"],
        storage_class=claim["spec"].get("storageClassName"),
    )


def _parts(has: Belongings, hindered: Hindrance | None) -> tuple[Condition, ...]:
    network = Condition(NETWORK, "True", "NetworkConfigured", "its networks are there")
    if hindered is not None:
        machine = Condition(MACHINE, "False", "VMFailed", hindered.message)
    elif has.machine is None:
        machine = Condition(MACHINE, "False", "VMFailed", "its VirtualMachine is gone")
    else:
        machine = Condition(MACHINE, "True", "VMCreated", "its VirtualMachine is there")
    return (network, storage_part(has.claims), machine)
