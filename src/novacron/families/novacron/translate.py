"""What a VirtualMachine of ``novacron.io/v1alpha1`` means to the core, and back.

Reads objects as the API server stores them. Their shape was checked and their defaults filled in
by the schema that is generated from the types, so parsing them into the types once more would
only cost, time for each look and 10 MiB. What is not as the schema says is Rejected. Within
lists there are no defaults: Argo CD compares lists as a whole and would see a difference for ever.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from novacron.core.affinity import Neighbour
from novacron.core.conditions import Condition, merge_conditions
from novacron.core.errors import Rejected
from novacron.core.image import PullPolicy
from novacron.core.machine import (
    Holding,
    Machine,
    Nic,
    Observed,
    Power,
    Resources,
    Usage,
)
from novacron.core.move import Move
from novacron.core.needs import needs_of
from novacron.core.placement import Placement
from novacron.core.quantity import format_mib, mib, parse_quantity
from novacron.core.report import MachineReport, Phase
from novacron.core.volume import Hold
from novacron.families.device_record import devices_of, written_devices
from novacron.families.move_record import (
    recorded_again,
    request_of,
    with_move,
    without_move,
    written_move,
)
from novacron.families.novacron.affinity_translate import (
    affinity_of,
    neighbour_of,
    tolerations_of,
    wanted_devices_of,
)
from novacron.families.novacron.hook_translate import hooks_of
from novacron.families.novacron.move_translate import booked, move_fields
from novacron.families.novacron.placement_record import (
    PLACEMENT,
    recorded,
    refusals_with,
    wants_elsewhere,
    written_record,
)
from novacron.families.novacron.volume_translate import (
    asked,
    awaiting_restart,
    classes_needed,
    listed,
    volume_of,
    volumes_held,
    written_volumes,
)
from novacron.families.seal import UNCHECKED, Seal
from novacron.families.snapshot_record import wishes_of, written_snapshots
from novacron.families.update import restart_allowed, restart_at_once
from novacron.families.wording import (
    amounts,
    as_the_schema_says,
    conditions_of,
    written_amounts,
    written_conditions,
)

__all__ = ["VirtualMachineKind"]

Object = dict[str, Any]

ABANDON = "novacron.io/abandon"
# For machines stored before the schema had it as a default.
DEFAULT_DISK = "10Gi"


@dataclass(frozen=True, slots=True)
class VirtualMachineKind:
    """How a VirtualMachine says "machine"; ``seal`` tells our own records from others'."""

    seal: Seal = UNCHECKED
    finalizer: str = "novacron.io/machine"

    def machine(self, obj: Object) -> Machine:
        """Return the machine an object declares; raise Rejected when it cannot be one."""
        with as_the_schema_says():
            return _machine(obj, self.seal)

    def holding(self, obj: Object) -> Holding | None:
        """Return what is reserved for it, without parsing more of the object than that."""
        record = _placement(obj, self.seal)
        if record is None:
            return None
        # A machine that is to shrink holds what it still has until it has shrunk.
        status = obj.get("status") or {}
        available = (_available(status.get("resources")) or Resources()) + listed(status)
        held = available.covering(record.reserved or Resources())
        return Holding(obj["metadata"]["uid"], record.host, held, record.devices)

    def neighbour(self, obj: Object) -> Neighbour:
        """Return what its machine is to those beside it; raise Rejected when nobody can tell."""
        with as_the_schema_says():
            return neighbour_of(obj)

    def booking(self, obj: Object) -> Holding | None:
        """Return what is reserved for it where it moves to."""
        return booked(obj, self.holding, self.seal)

    def asks_to_move(self, obj: Object) -> bool:
        """Say whether it has a request to move, or wants to be placed differently than it was."""
        return request_of(obj) is not None or wants_elsewhere(obj, self.seal)

    def volumes_held(self, obj: Object) -> Mapping[str, Hold]:
        """Return all volumes that its machine has, had or asks for, by their ids."""
        with as_the_schema_says():
            return volumes_held(obj)

    def is_settled(self, obj: Object) -> bool:
        """Say whether its status was written for the spec it has now."""
        seen = (obj.get("status") or {}).get("observedGeneration")
        return bool(seen == obj["metadata"]["generation"])

    def placed(self, obj: Object, placement: Placement) -> Object:
        """Return the object with our finalizer and the record of where its machine will be."""
        return self._on_record(obj, written_record(obj, placement, self.seal))

    def _on_record(self, obj: Object, record: str) -> Object:
        metadata = obj["metadata"]
        finalizers = [name for name in metadata.get("finalizers") or () if name != self.finalizer]
        annotations = {
            **(metadata.get("annotations") or {}),
            PLACEMENT: record,
        }
        changed = {
            **metadata,
            "finalizers": [*finalizers, self.finalizer],
            "annotations": annotations,
        }
        return {**obj, "metadata": changed}

    def moving(self, obj: Object, placement: Placement, move: Move | None) -> Object:
        """Return the object with the record of a move in place of all requests; None is none."""
        changed = without_move(obj) if move is None else with_move(obj, move, self.seal)
        return self.placed(changed, placement)

    def moved(self, obj: Object, placement: Placement) -> Object:
        """Return the object without the record of a move that is over."""
        record = written_record(obj, placement, self.seal, met=False)
        return self._on_record(without_move(obj), record)

    def recorded(self, obj: Object) -> Object:
        """Return the object with the record of its move under way, also where that was lost."""
        return recorded_again(obj, self.seal)

    def unplaced(self, obj: Object) -> Object:
        """Return the object without finalizer and record, for a machine that was never made."""
        metadata = obj["metadata"]
        annotations = {**(metadata.get("annotations") or {})}
        annotations.pop(PLACEMENT, None)
        finalizers = [name for name in metadata.get("finalizers") or () if name != self.finalizer]
        return {
            **obj,
            "metadata": {**metadata, "finalizers": finalizers, "annotations": annotations},
        }

    def status(self, obj: Object, machine: Machine, report: MachineReport) -> Object:
        """Return the object's whole status after a round; what is not ours stays."""
        status: Object = dict(obj.get("status") or {})
        if report.phase is not None:
            status["phase"] = report.phase.value
        status["nodeName"] = report.host
        # What a machine has is reserved for it; only a difference needs to be said.
        has = report.seen.resources if report.seen else None
        status["reservation"] = written_amounts(None if report.reserved == has else report.reserved)
        status["devices"] = written_devices(machine.devices if report.host else ()) or None
        status["refusals"] = refusals_with(report.refused_hosts, status) or None
        status["refusedHosts"] = sorted(report.refused_hosts) or None
        if report.leftovers is not None:
            status["leftoverHosts"] = sorted(report.leftovers) or None
        if report.unreached is not None:
            status["unreachedHosts"] = sorted(report.unreached) or None
        if report.move is not None:
            status["migration"] = written_move(report.move)
        status["conditions"] = written_conditions(report.conditions)
        status["observedGeneration"] = machine.generation
        if report.seen is not None:
            status["vmID"] = report.seen.vm_id
            status["ipAddresses"] = list(report.seen.addresses) or None
            status["resources"] = _written_usage(report.seen, machine, report)
            status["guestCpu"] = report.seen.cpu or None
            status["volumes"] = written_volumes(report.seen.volumes)
        if report.snapshots is not None:
            status |= written_snapshots(report.snapshots)
        return status

    def refusal(self, obj: Object, why: Rejected, now: datetime) -> Object:
        """Return the status of an object that cannot be understood."""
        status: Object = dict(obj.get("status") or {})
        claim = Condition("Ready", "False", why.reason, str(why))
        conditions = merge_conditions(conditions_of(status), {"Ready": claim}, now)
        return status | {
            "phase": Phase.FAILED.value,
            "conditions": written_conditions(conditions),
            "observedGeneration": obj["metadata"]["generation"],
        }


def _machine(obj: Object, seal: Seal) -> Machine:
    metadata, spec, status = obj["metadata"], obj["spec"], obj.get("status") or {}
    template = spec["template"]["spec"]
    nics = tuple(_nic(network) for network in template.get("networks") or ())
    hooks, snapshots = hooks_of(template.get("lifecycle")), wishes_of(spec, status)
    labels = (spec["template"].get("metadata") or {}).get("labels") or {}
    record = _placement(obj, seal)
    volumes = tuple(volume_of(each) for each in template.get("volumes") or ())
    ids = [each.id_for(metadata["name"], metadata["uid"]) for each in volumes]
    detached = listed(status, but=ids)
    return Machine(
        uid=metadata["uid"],
        namespace=metadata["namespace"],
        name=metadata["name"],
        wanted=_wanted(template["resources"]) + asked(volumes, ids) + detached,
        image=template["image"]["source"],
        power=Power.ON if spec.get("running", True) else Power.OFF,
        generation=metadata["generation"],
        seen_generation=status.get("observedGeneration", 0),
        deleting="deletionTimestamp" in metadata,
        labels=labels,
        host_selector=template.get("nodeSelector") or {},
        affinity=affinity_of(template, metadata["namespace"], labels),
        tolerations=tolerations_of(template),
        wanted_devices=wanted_devices_of(template),
        nics=nics,
        needs=needs_of(nics, hooks, snapshots) | classes_needed(volumes),
        user_data=template.get("userData"),
        checksum=template["image"].get("checksum"),
        pull=PullPolicy(template["image"].get("pullPolicy", PullPolicy.IF_NOT_PRESENT)),
        hooks=hooks,
        volumes=volumes,
        detached_mib=detached.disk_mib,
        awaiting_restart=awaiting_restart(status),
        restart_allowed=restart_allowed(spec.get("updateStrategy") or {}),
        restart_at_once=restart_at_once(spec.get("updateStrategy") or {}),
        live_migration_allowed=(spec.get("migrationPolicy") or {}).get("allowLiveMigration", True),
        host=record.host if record else None,
        promised=record is not None and not status.get("nodeName"),
        abandoned=(metadata.get("annotations") or {}).get(ABANDON) == "true",
        unseen=not status.get("resources"),
        reserved=record.reserved if record else None,
        devices=record.devices if record else (),
        placed_because=_because(obj, record, seal),
        refused_hosts=frozenset(status.get("refusedHosts") or ()),
        conditions=conditions_of(status),
        usage=_usage(status.get("resources")),
        snapshots=snapshots,
        **move_fields(obj, seal),
    )


def _placement(obj: Object, seal: Seal) -> Placement | None:
    """Return where the machine is or will be, and what is reserved for it there.

    The status tells as soon as there is one. Before, it is the record that was written together
    with the finalizer. A copy of another object's record is not ours, one from before a host
    refused the machine is void, and one that somebody else wrote is none: the placer then finds
    out.
    """
    status = obj.get("status") or {}
    if host := status.get("nodeName"):
        reserved = amounts(status.get("reservation")) or _available(status.get("resources"))
        if reserved and not reserved.shares and status.get("volumes"):
            # Written when storage classes were not reserved: what the machine has is its own.
            reserved = replace(reserved, shares=listed(status).shares)
        return Placement(host, reserved, devices_of(status.get("devices")))
    record = recorded(obj, seal)
    # Refusals were not always counted.
    void = record is None or record.host in (status.get("refusedHosts") or ())
    return None if void else record


def _because(obj: Object, placement: Placement | None, seal: Seal) -> str:
    """Return why the machine is where it is, as long as it is where it was placed."""
    if placement is None or placement.because:
        return placement.because if placement else ""
    record = recorded(obj, seal)
    return record.because if record and record.host == placement.host else ""


def _wanted(resources: Object) -> Resources:
    disk = resources.get("disk", DEFAULT_DISK)
    return Resources(resources["cpu"], mib(resources["memory"]), mib(disk))


def _nic(network: Object) -> Nic:
    ipv4, ipv6, dns = (network.get(name) or {} for name in ("ipv4", "ipv6", "dns"))
    return Nic(
        network["name"],
        ipv4.get("address"),
        ipv4.get("gateway"),
        ipv6.get("address"),
        ipv6.get("gateway"),
        network.get("mac"),
        tuple(dns.get("servers") or ()),
        tuple(dns.get("search") or ()),
        network.get("type"),
        ipv6.get("method") == "dhcp",
    )


def _available(written: Mapping[str, Any] | None) -> Resources | None:
    """Return what the machine had when it was last looked at."""
    if not written:
        return None
    cpu, memory, disk = (
        (written.get(name) or {}).get("available", 0) for name in ("cpu", "memory", "disk")
    )
    return Resources(int(cpu), mib(memory), mib(disk))


def _usage(written: Mapping[str, Any] | None) -> Usage | None:
    if not written:
        return None
    cpu, memory, disk = (
        (written.get(name) or {}).get("used") for name in ("cpu", "memory", "disk")
    )
    if cpu is None and memory is None and disk is None:
        return None
    return Usage(
        cpu_cores=None if cpu is None else float(parse_quantity(cpu)),
        memory_mib=None if memory is None else mib(memory),
        disk_mib=None if disk is None else mib(disk),
    )


def _written_usage(seen: Observed, machine: Machine, report: MachineReport) -> Object:
    usage = seen.usage if report.write_usage else machine.usage
    if seen.power is Power.OFF:
        usage = None  # a stopped machine uses nothing worth measuring
    entries: dict[str, Object] = {
        "cpu": {"available": str(seen.resources.vcpus)},
        "memory": {"available": format_mib(seen.resources.memory_mib)},
        "disk": {"available": format_mib(seen.resources.disk_mib)},
    }
    if usage is not None:
        if usage.cpu_cores is not None:
            entries["cpu"]["used"] = f"{usage.cpu_cores:.2f}".rstrip("0").rstrip(".")
        if usage.memory_mib is not None:
            entries["memory"]["used"] = format_mib(usage.memory_mib)
        if usage.disk_mib is not None:
            entries["disk"]["used"] = format_mib(usage.disk_mib)
    return entries
