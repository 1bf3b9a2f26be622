"""What became of a machine, in the words of a Machine's status."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from novacron.core.conditions import Condition, merge_conditions
from novacron.core.errors import Rejected
from novacron.core.machine import Machine, Nic, Observed, Power
from novacron.core.quantity import MIB, format_mib
from novacron.core.report import MachineReport, Phase
from novacron.core.volume import Attachment, SeenVolume
from novacron.families.move_record import written_move
from novacron.families.snapshot_record import written_snapshots
from novacron.families.viti.class_pin import CLASS_CHANGED
from novacron.families.viti.guest_status import addresses_in_words, guest_status, nics_seen
from novacron.families.viti.marks import KUBEVIRT_CONFIG
from novacron.families.viti.media import ejected, iso_of
from novacron.families.viti.pin import asked_for, pin_of
from novacron.families.viti.resolve import without_effect
from novacron.families.wording import conditions_of, written_conditions, written_time

__all__ = ["refused", "written"]

Object = dict[str, Any]

PENDING, CREATING, RUNNING, STOPPED, FAILED = (
    "Pending",
    "Creating",
    "Running",
    "Stopped",
    "Failed",
)
PHASES = {
    Phase.RUNNING: RUNNING,
    Phase.MIGRATING: RUNNING,
    Phase.STOPPED: STOPPED,
    Phase.FAILED: FAILED,
}
# What the specification calls failures of the cluster, whichever of our words it was.
API_ERROR = "KubeVirtApiError"
# That another cluster was asked for later than a Machine was made.
STAYS = "StaysInCluster"
REASONS = {
    "HostUnreachable": API_ERROR,
    "HostTrouble": API_ERROR,
    "HypervisorError": API_ERROR,
    "KubeVirtRefused": API_ERROR,
    "CredentialsMissing": API_ERROR,
    "OtherHost": API_ERROR,
}
# What may come yet, without a change of the Machine itself.
MAY_COME = frozenset({"NetworkConfigurationNotFound"})
# The drive of the install medium.
ISO = "iso"
IGNORED = "FieldsWithoutEffect"
STATES = {
    Attachment.ATTACHED: "Attached",
    Attachment.ATTACHING: "Pending",
    Attachment.GROWING: "Growing",
    Attachment.PENDING: "Pending",
    Attachment.AWAITS_RESTART: "AwaitsRestart",
    Attachment.DETACHING: "Detached",
    Attachment.DETACHED: "Detached",
}


def written(
    obj: Object, machine: Machine, report: MachineReport, class_changed: Condition | None = None
) -> Object:
    """Return the whole status after a round; the time in it moves only with a change."""
    before: Object = obj.get("status") or {}
    status = dict(before)
    told = tuple(map(_in_its_words, report.conditions))
    more: dict[str, Condition | None] = {IGNORED: _ignored(obj["spec"]), **_stays(obj)}
    more[CLASS_CHANGED] = class_changed
    moment = report.at or datetime.now(UTC)
    status["conditions"] = written_conditions(merge_conditions(told, more, moment))
    status["observedGeneration"] = machine.generation
    pin = pin_of(obj)
    status["provider"] = str(pin) if pin else None
    # A machine that nobody could ask about yet waits like any other that is new.
    status["phase"] = _phase(report) or before.get("phase") or PENDING
    status |= _told(report.conditions, status.get("phase"))
    if report.seen is not None:
        status |= _seen(machine, report.seen)
        if ejected(obj) and (medium := iso_of(obj)) is not None:
            status["iso"] = {"source": medium.source, "state": "Ejected"}
    if report.move is not None:
        status["migration"] = written_move(report.move)
    if report.snapshots is not None:
        status |= written_snapshots(report.snapshots)
    return _dated(obj, status, report.at)


def refused(obj: Object, why: Rejected, now: datetime) -> Object:
    """Return the whole status of a Machine that cannot be one, or not yet."""
    status: Object = dict(obj.get("status") or {})
    claims: dict[str, Condition | None] = {
        "Ready": Condition("Ready", "False", why.reason, str(why))
    }
    if why.reason in MAY_COME:
        claims["NetworkReady"] = Condition("NetworkReady", "False", "NetworkFailed", str(why))
    conditions = merge_conditions(conditions_of(status), claims, now)
    exists = bool(status.get("vmName"))
    if why.reason not in MAY_COME:
        status["phase"] = FAILED
    elif not exists:
        status["phase"] = PENDING
    status["conditions"] = written_conditions(conditions)
    status["observedGeneration"] = obj["metadata"]["generation"]
    status |= _told(conditions, status.get("phase"))
    return _dated(obj, status, now)


def _stays(obj: Object) -> dict[str, Condition | None]:
    """Say of a Machine that asks for another cluster than it is in that it stays there."""
    pin, asked = pin_of(obj), asked_for(obj)
    if pin is None or pin.secret == asked.secret:
        return {STAYS: None}
    there, here = (
        f"the cluster of Secret {each.secret}" if each.secret else "the operator's own cluster"
        for each in (asked, pin)
    )
    message = (
        f"it was made in {here} and stays there; it asks for {there} by now: set the annotation "
        f"{KUBEVIRT_CONFIG} back, or delete the Machine and create it anew"
    )
    return {STAYS: Condition(STAYS, "True", "MadeElsewhere", message)}


def _ignored(spec: Object) -> Condition | None:
    """Name the fields that are taken so that upstream's manifests apply, and change nothing."""
    fields = ", ".join(f"spec.{field}" for field in without_effect(spec))
    if not fields:
        return None
    return Condition(IGNORED, "True", "UpstreamFields", f"these have no effect here: {fields}")


def _phase(report: MachineReport) -> str | None:
    if report.phase is None or report.phase in PHASES:
        return PHASES[report.phase] if report.phase else None
    return CREATING if report.seen is not None and report.seen.vm_id else PENDING


def _in_its_words(claim: Condition) -> Condition:
    return replace(claim, reason=REASONS.get(claim.reason, claim.reason))


def _told(conditions: Iterable[Condition], phase: str | None) -> Object:
    """Return the sentences beside the phase: why it is not Ready, and why it Failed."""
    ready = next((each for each in conditions if each.type == "Ready"), None)
    unready = ready if ready is not None and ready.status != "True" else None
    failed = unready if phase == FAILED else None
    return {
        "message": unready.message if unready else None,
        "failureReason": REASONS.get(failed.reason, failed.reason) if failed else None,
        "failureMessage": failed.message if failed else None,
    }


def _seen(machine: Machine, seen: Observed) -> Object:
    there = bool(seen.vm_id)
    runs = seen.power is Power.ON
    wanted = machine.wanted
    return {
        "vmName": machine.name if there else None,
        "vmiName": machine.name if runs else None,
        "providerID": seen.vm_id or None,
        "ipAddresses": list(seen.addresses) or None,
        "nodeName": seen.node,
        "size": {
            "cpus": wanted.vcpus,
            "memory": format_mib(wanted.memory_mib),
            "disk": format_mib(wanted.disk_mib),
        },
        "cpus": seen.resources.vcpus if runs else None,
        "memory": seen.resources.memory_mib * MIB if runs else None,
        "disks": _disks(machine, seen) if there else None,
        "image": _import(machine, seen, machine.first_disk.name),
        "iso": _import(machine, seen, ISO),
        "networkInterfaces": [_nic(nic, seen) for nic in machine.nics] or None,
        **guest_status(seen),
    }


def _disks(machine: Machine, seen: Observed) -> list[Object]:
    disks = (*((seen.first_volume,) if seen.first_volume else ()), *seen.volumes)
    return [_disk(machine, each) for each in disks]


def _disk(machine: Machine, seen: SeenVolume) -> Object:
    grows = seen.has_mib is not None
    entry: Object = {
        "name": seen.name,
        "pvcName": f"{machine.name}-{seen.name}",
        "size": (seen.has_mib if seen.has_mib is not None else seen.size_mib) * MIB,
        "wantedSize": seen.size_mib * MIB if grows else None,
        "storageClass": seen.storage_class,
        "volumeMode": None if seen.block is None else ("Block" if seen.block else "Filesystem"),
        "accessModes": [seen.access.value] if seen.access else None,
        "type": seen.bus,
        "device": seen.device,
        "state": STATES[seen.attachment],
        "message": seen.note or None,
    }
    return {name: value for name, value in entry.items() if value is not None}


def _import(machine: Machine, seen: Observed, disk: str) -> Object | None:
    """Return how far an image or an install medium is; what was done stays said."""
    found = next((each for each in seen.imports if each.disk == disk), None)
    if found is None or (disk != ISO and not machine.image):
        return None
    entry: Object = {
        "source": found.source,
        "state": found.state.value,
        "progress": found.percent,
        "message": found.message or None,
    }
    return {name: value for name, value in entry.items() if value is not None}


def _nic(nic: Nic, seen: Observed) -> Object:
    has = next((each for each in nics_seen(seen) if each.name == nic.name), None)
    entry: Object = {
        "name": nic.name,
        "macAddress": nic.mac,
        "networkName": nic.network or None,
        **(addresses_in_words(has.addresses) if has else {}),
        "state": has.link or None if has else None,
    }
    return {name: value for name, value in entry.items() if value is not None}


def _dated(obj: Object, status: Object, now: datetime | None) -> Object:
    """Return a status with the time and the version it was found out at, where it says more."""
    new = {name: value for name, value in status.items() if value is not None}
    if new == (obj.get("status") or {}):
        return new
    return new | {
        "lastUpdated": written_time(now),
        "resourceVersion": obj["metadata"]["resourceVersion"],
    }
