"""What a VirtualMachine of ``novacron.io/v1alpha1`` means to the core, and back.

Reads objects as the API server stores them. Their shape was checked and their defaults filled in
by the schema that is generated from the types, so parsing them into the types once more would
only cost, time for each look and 10 MiB. What is not as the schema says is Rejected. Within
lists there are no defaults: Argo CD compares lists as a whole and would see a difference for ever.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from novacron.core.conditions import Condition, merge_conditions
from novacron.core.machine import (
    Holding,
    Machine,
    Nic,
    Observed,
    Power,
    Resources,
    Unanswered,
    Usage,
)
from novacron.core.move import Move
from novacron.core.quantity import format_mib, mib, parse_quantity
from novacron.core.report import MachineReport, Phase
from novacron.families.novacron.move_translate import (
    MIGRATE_CANCEL,
    last_move,
    move_of,
    policy_of,
    request_of,
    wishes_of,
    with_move,
    without_move,
    written_move,
)
from novacron.families.novacron.wording import (
    amounts,
    as_the_schema_says,
    conditions_of,
    written_amounts,
    written_conditions,
)

__all__ = ["VirtualMachineKind"]

Object = dict[str, Any]

# Where a machine will be made, written before it is.
PLACEMENT = "novacron.io/placement"
# Fields that ask for action which no controller takes yet, by their place in the template.
NOT_YET = {
    "volumes": "the machine runs without these disks",
    "devices": "the machine runs without these devices",
    "affinity": "the machine is placed without regard to it",
    "tolerations": "hosts with taints are avoided all the same",
    "lifecycle": "the machine starts and stops without these hooks",
}
# For machines stored before the schema had it as a default.
DEFAULT_DISK = "10Gi"
SNAPSHOTS_NOT_YET = "no snapshots are taken"


class VirtualMachineKind:
    """How a VirtualMachine says "machine"."""

    finalizer = "novacron.io/machine"

    def machine(self, obj: Object) -> Machine:
        """Return the machine an object declares; raise Rejected when it cannot be one."""
        with as_the_schema_says():
            return _machine(obj)

    def holding(self, obj: Object) -> Holding | None:
        """Return what is reserved for it, without parsing more of the object than that."""
        host, reserved = _placement(obj)
        if host is None:
            return None
        # A machine that is to shrink holds what it still has until it has shrunk.
        available = _available((obj.get("status") or {}).get("resources")) or Resources()
        return Holding(obj["metadata"]["uid"], host, available.covering(reserved or Resources()))

    def booking(self, obj: Object) -> Holding | None:
        """Return what is reserved for it where it moves to."""
        move, _ = move_of(obj)
        held = self.holding(obj)
        return None if move is None or held is None else replace(held, host=move.target)

    def asks_to_move(self, obj: Object) -> bool:
        """Say whether it has a request to move, or wants to be placed differently than it was."""
        return request_of(obj) is not None or _wishes_changed(obj)

    def is_settled(self, obj: Object) -> bool:
        """Say whether its status was written for the spec it has now."""
        seen = (obj.get("status") or {}).get("observedGeneration")
        return bool(seen == obj["metadata"]["generation"])

    def placed(self, obj: Object, host: str, reserved: Resources) -> Object:
        """Return the object with our finalizer and the record of where its machine will be."""
        metadata = obj["metadata"]
        wishes = wishes_of(obj["spec"]["template"]["spec"])
        record = {
            "uid": metadata["uid"],
            "host": host,
            "wishes": wishes,
            **(written_amounts(reserved) or {}),
        }
        finalizers = [name for name in metadata.get("finalizers") or () if name != self.finalizer]
        annotations = {
            **(metadata.get("annotations") or {}),
            PLACEMENT: json.dumps(record, sort_keys=True),
        }
        changed = {
            **metadata,
            "finalizers": [*finalizers, self.finalizer],
            "annotations": annotations,
        }
        return {**obj, "metadata": changed}

    def moving(self, obj: Object, host: str, reserved: Resources, move: Move | None) -> Object:
        """Return the object with the record of a move in place of all requests; None is none."""
        asked = without_move(obj) if move is None else with_move(obj, move)
        return self.placed(asked, host, reserved)

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
        status["refusedHosts"] = sorted(report.refused_hosts) or None
        if report.leftovers is not None:
            status["leftoverHosts"] = sorted(report.leftovers) or None
        if report.move is not None:
            status["migration"] = written_move(report.move)
        status["conditions"] = written_conditions(report.conditions)
        status["observedGeneration"] = machine.generation
        if report.seen is not None:
            status["vmID"] = report.seen.vm_id
            status["ipAddresses"] = list(report.seen.addresses) or None
            status["resources"] = _written_usage(report.seen, machine, report)
        return status

    def refusal(self, obj: Object, why: str, now: datetime) -> Object:
        """Return the status of an object that cannot be understood."""
        status: Object = dict(obj.get("status") or {})
        claim = Condition("Ready", "False", "InvalidSpec", why)
        conditions = merge_conditions(conditions_of(status), {"Ready": claim}, now)
        return status | {
            "phase": Phase.FAILED.value,
            "conditions": written_conditions(conditions),
            "observedGeneration": obj["metadata"]["generation"],
        }


def _machine(obj: Object) -> Machine:
    metadata, spec, status = obj["metadata"], obj["spec"], obj.get("status") or {}
    template = spec["template"]["spec"]
    host, reserved = _placement(obj)
    move, move_over = move_of(obj)
    return Machine(
        uid=metadata["uid"],
        namespace=metadata["namespace"],
        name=metadata["name"],
        wanted=_wanted(template["resources"]),
        image=template["image"]["source"],
        power=Power.ON if spec.get("running", True) else Power.OFF,
        generation=metadata["generation"],
        seen_generation=status.get("observedGeneration", 0),
        deleting="deletionTimestamp" in metadata,
        labels=(spec["template"].get("metadata") or {}).get("labels") or {},
        host_selector=template.get("nodeSelector") or {},
        nics=tuple(_nic(network) for network in template.get("networks") or ()),
        user_data=template.get("userData"),
        checksum=template["image"].get("checksum"),
        restart_allowed=_restart_allowed(spec.get("updateStrategy") or {}),
        live_migration_allowed=(spec.get("migrationPolicy") or {}).get("allowLiveMigration", True),
        unanswered=tuple(_unanswered(spec)),
        host=host,
        reserved=reserved,
        refused_hosts=frozenset(status.get("refusedHosts") or ()),
        conditions=conditions_of(status),
        usage=_usage(status.get("resources")),
        move_policy=policy_of(spec),
        move_request=request_of(obj),
        move_cancelled=MIGRATE_CANCEL in (metadata.get("annotations") or {}),
        move=move,
        move_over=move_over,
        last_move=last_move(status),
        wishes_changed=_wishes_changed(obj),
        leftovers=frozenset(status.get("leftoverHosts") or ()),
    )


def _placement(obj: Object) -> tuple[str | None, Resources | None]:
    """Return where the machine is or will be, and what is reserved for it there.

    The status tells as soon as there is one. Before, it is the record that was written together
    with the finalizer. A copy of another object's record is not ours, one of a host that refused
    the machine is void, and one that somebody wrote into is none: the placer then finds out.
    """
    status = obj.get("status") or {}
    if host := status.get("nodeName"):
        return host, amounts(status.get("reservation")) or _available(status.get("resources"))
    metadata = obj["metadata"]
    text = (metadata.get("annotations") or {}).get(PLACEMENT)
    if not text:
        return None, None
    try:
        record = json.loads(text)
        host, reserved, ours = record["host"], amounts(record), record["uid"] == metadata["uid"]
    except (KeyError, TypeError, ValueError):
        return None, None
    void = host in (status.get("refusedHosts") or ())
    return (host, reserved) if ours and not void else (None, None)


def _wishes_changed(obj: Object) -> bool:
    """Say whether its owner wants it elsewhere than when it was last placed."""
    text = (obj["metadata"].get("annotations") or {}).get(PLACEMENT)
    try:
        before = json.loads(text or "{}").get("wishes")
    except (AttributeError, ValueError):
        return False
    return before is not None and before != wishes_of(obj["spec"]["template"]["spec"])


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
    )


def _restart_allowed(strategy: Object) -> bool:
    """Say whether a change may cost a restart; no machine may be away at once is a no."""
    rolling = strategy.get("rollingUpdate") or {}
    return str(rolling.get("maxUnavailable", 1)).rstrip("%") != "0"


def _unanswered(spec: Object) -> Iterator[Unanswered]:
    template = spec["template"]["spec"]
    for name, consequence in NOT_YET.items():
        if template.get(name):
            yield Unanswered(f"spec.template.spec.{name}", consequence)
    if spec.get("snapshotPolicy") is not None:
        yield Unanswered("spec.snapshotPolicy", SNAPSHOTS_NOT_YET)


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
