"""What a cluster's objects say of a machine, in the core's words.

Pure: objects in, an observation out.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any

import orjson

from novacron.core.change import Change, How
from novacron.core.conditions import Condition
from novacron.core.machine import Hindrance, Observed, Power, Resources
from novacron.core.quantity import mib
from novacron.core.volume import Attachment, SeenVolume
from novacron.drivers.kubevirt.belongings import Belongings
from novacron.drivers.kubevirt.changes import DRAIN, changes
from novacron.drivers.kubevirt.disks import asked_mib, growing, in_order, is_first, seen_volume
from novacron.drivers.kubevirt.guest_facts import facts_of_guest, interfaces
from novacron.drivers.kubevirt.hindrances import SLOW, hindrance, ignored, is_pending
from novacron.drivers.kubevirt.imports import is_spent, seen_imports
from novacron.drivers.kubevirt.migrations import moved
from novacron.drivers.kubevirt.names import APPLIED, ISO, RECIPE, UID
from novacron.drivers.kubevirt.nodes import Node, unknown, why_unsure
from novacron.drivers.kubevirt.sameness import difference
from novacron.drivers.kubevirt.settings import AS_USUAL, Settings
from novacron.drivers.kubevirt.view import as_requested, condition

__all__ = ["PATIENCE", "has_no_node", "observed", "storage_part"]

Object = dict[str, Any]

# The cluster tells of every change; this is for what may be missed all the same.
PATIENCE = timedelta(seconds=60)
ENDED = ("Succeeded", "Failed")
STORAGE, NETWORK, MACHINE = "StorageReady", "NetworkReady", "VirtualMachineReady"


def observed(
    has: Belongings,
    settings: Settings = AS_USUAL,
    node: Callable[[str | None], Node | None] = unknown,
) -> Observed | None:
    """Return how a machine is; None when there is neither it nor an instance of it."""
    vm, vmi = has.machine, has.instance
    shown = vm or vmi
    if shown is None:
        return None
    power, changing = _power(vm, vmi)
    hindered = hindrance(has) if changing == "start" else None
    configured = _configured(vm or {}, has.claims)
    runs = _current(vmi, configured) if vmi and power is Power.ON else configured
    settled = vm is not None and vmi is not None and power is Power.ON and not changing
    pending = _pending(has, settings) if settled else ()
    # What is left of a guest that has ended is nowhere, and has the addresses and disks it had.
    lives = vmi if _ended(vmi) is None else None
    where = (lives or {}).get("status", {}).get("nodeName")
    first, volumes = _disks(has, lives)
    return Observed(
        uid=shown["metadata"]["labels"][UID],
        vm_id=shown["metadata"]["uid"],
        power=power,
        resources=runs,
        changing=changing,
        addresses=_addresses(lives),
        live_migratable=True,
        immovable=_immovable(vmi),
        abandoned=changing == "create",
        due=(PATIENCE if hindered else SLOW) if changing else None,
        after_restart=configured if configured != runs else None,
        awaits_restart=_awaits_restart(vm, vmi, pending) if settled else (),
        pending=pending,
        recipe=(shown["metadata"].get("annotations") or {}).get(RECIPE) if vm else None,
        drifted=_drifted(vm, has) if vm else None,
        ended=_ended(vmi),
        volumes=volumes,
        imports=seen_imports(has),
        first_volume=first,
        node=where,
        moved=moved(vmi),
        unsure=why_unsure(where, node(where)) if power is Power.ON else None,
        parts=_parts(has, hindered),
        hindered=hindered,
        guest=facts_of_guest(vm, lives),
    )


def _disks(
    has: Belongings, lives: Object | None
) -> tuple[SeenVolume | None, tuple[SeenVolume, ...]]:
    """Return the first disk, and all others in the order in which the machine lists them."""
    vm, first, others = has.machine, None, []
    for claim in in_order(has.claims, vm):
        seen = seen_volume(claim, vm, lives)
        if is_first(claim, vm):
            first = seen
        else:
            others.append(seen)
    return first, (*others, *_spent(has))


def _immovable(vmi: Object | None) -> str | None:
    movable = condition(vmi, "LiveMigratable")
    return movable.get("message") if movable.get("status") == "False" else None


def has_no_node(vmi: Object) -> bool:
    """Say whether an instance is only wished for: nothing of it runs anywhere."""
    return (vmi.get("status") or {}).get("phase") in (None, "", "Pending", "Scheduling")


def storage_part(claims: tuple[Object, ...]) -> Condition:
    """Say whether every disk has its place, and will keep it."""
    if waiting := [_name(claim) for claim in claims if is_pending(claim)]:
        message = (
            f"not bound yet: {', '.join(waiting)}; kubectl describe pvc says what they wait for"
        )
        return Condition(STORAGE, "False", "PVCPending", message)
    if doomed := [_name(claim) for claim in claims if "deletionTimestamp" in claim["metadata"]]:
        message = (
            f"somebody deleted PersistentVolumeClaim {', '.join(doomed)}, which goes with all that "
            "is on it when the machine stops: save what is needed before"
        )
        return Condition(STORAGE, "False", "PVCPending", message)
    return Condition(STORAGE, "True", "PVCBound", f"{len(claims)} claims are bound")


def _name(obj: Object) -> str:
    return str(obj["metadata"]["name"])


def _power(vm: Object | None, vmi: Object | None) -> tuple[Power, str | None]:
    """Return whether a machine runs, and what is being done about it."""
    if vm is None:
        # What keeps the instance is gone, or nobody hears of it any more: it is asked for again.
        leaving = "deletionTimestamp" in (vmi or {}).get("metadata", {})
        return Power.ON, "delete" if leaving else "create"
    if "deletionTimestamp" in vm["metadata"]:
        return (Power.ON if vmi else Power.OFF), "delete"
    phase = ((vmi or {}).get("status") or {}).get("phase")
    wanted = vm["spec"].get("runStrategy") != "Halted"
    if vmi is None or phase in ENDED:
        return Power.OFF, "start" if wanted else None
    if "deletionTimestamp" in vmi["metadata"] or not wanted:
        return Power.ON, "stop"
    return (Power.ON, None) if phase == "Running" else (Power.OFF, "start")


def _configured(vm: Object, claims: tuple[Object, ...]) -> Resources:
    """Return what the machine is set to have."""
    domain = vm.get("spec", {}).get("template", {}).get("spec", {}).get("domain", {})
    cpu, guest = domain.get("cpu") or {}, (domain.get("memory") or {}).get("guest", 0)
    first = next((claim for claim in claims if is_first(claim, vm)), None)
    return Resources(_vcpus(cpu), mib(guest), asked_mib(first) if first else 0)


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
    return tuple(dict.fromkeys(each for nic in interfaces(vmi) for each in nic.addresses))


def _spent(has: Belongings) -> Iterator[SeenVolume]:
    """Return an install medium that is to go, and that nothing keeps any more."""
    for each in has.imports:
        if is_spent(each, has):
            yield SeenVolume(ISO, 0, Attachment.DETACHING, each["metadata"]["name"])


def _pending(has: Belongings, settings: Settings) -> tuple[Change, ...]:
    """Return what the guest has not yet of what it is to have."""
    assert has.machine is not None
    assert has.instance is not None
    template = as_requested(has.machine)["spec"]
    found = changes(template, has.instance, settings)
    return (*found, *growing(has, settings))


def _awaits_restart(
    vm: Object | None, vmi: Object | None, pending: tuple[Change, ...]
) -> tuple[str, ...]:
    """Return what of a change only a restart brings about, as far as KubeVirt agrees."""
    required = condition(vm, "RestartRequired")
    if vm is None or vmi is None or required.get("status") != "True":
        return ()
    # It is said of the instance before for a moment after a restart.
    if required.get("lastTransitionTime", "") < vmi["metadata"]["creationTimestamp"]:
        return ()
    parts = dict.fromkeys(each.part for each in pending if each.how is How.RESTART)
    if tuple(parts) == (DRAIN,):
        return ()  # it is of no account before its node is drained
    return tuple(parts) or ("its template",)


def _drifted(vm: Object, has: Belongings) -> str | None:
    applied = (vm["metadata"].get("annotations") or {}).get(APPLIED)
    if not applied:
        return "somebody took our record off its VirtualMachine"
    wanted = orjson.loads(applied)
    where = difference(as_requested(vm), wanted) or difference(
        vm["metadata"].get("labels"), wanted["metadata"]["labels"], "labels"
    )
    if where is not None:
        return f"somebody changed {where} of its VirtualMachine"
    # The claim of an install medium is its import's, and has the name of that.
    there = {_name(each) for each in (*has.claims, *has.imports)}
    lost = [name for name in _claimed(wanted) if name not in there]
    return f"somebody deleted PersistentVolumeClaim {', '.join(lost)}" if lost else None


def _claimed(template: Object) -> list[str]:
    """Return the names of the claims that instances of a template need."""
    volumes = template["spec"].get("volumes") or ()
    named = [each.get("persistentVolumeClaim", {}).get("claimName") for each in volumes]
    return [name for name in named if name]


def _ended(vmi: Object | None) -> str | None:
    phase = ((vmi or {}).get("status") or {}).get("phase")
    return {"Succeeded": "its guest shut down", "Failed": "its guest failed"}.get(phase or "")


def _parts(has: Belongings, hindered: Hindrance | None) -> tuple[Condition, ...]:
    network = Condition(NETWORK, "True", "NetworkConfigured", "its networks are there")
    if hindered is not None or (hindered := ignored(has)) is not None:
        machine = Condition(MACHINE, "False", "VMFailed", hindered.message)
    elif has.machine is None:
        machine = Condition(MACHINE, "False", "VMFailed", "its VirtualMachine is gone")
    else:
        machine = Condition(MACHINE, "True", "VMCreated", "its VirtualMachine is there")
    return (network, storage_part(has.claims), machine)
