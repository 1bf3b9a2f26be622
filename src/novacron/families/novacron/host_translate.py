"""What a Host of ``novacron.io/v1alpha1`` means to the core, and back.

Reads objects as the API server stores them: their shape was checked by their schema.
"""

from collections.abc import Iterator
from typing import Any

from novacron.core.cpu import Cpu
from novacron.core.eviction import Eviction
from novacron.core.host import (
    DeclaredHost,
    Drain,
    HostFacts,
    HostReport,
    NodeMarks,
    Overcommit,
    StorageFacts,
    StorageRoom,
    Taint,
)
from novacron.core.network import HostNetwork, network_offers
from novacron.core.offer import Offer, OfferKind
from novacron.core.quantity import format_mib, mib
from novacron.families.device_record import devices_of, written_devices
from novacron.families.novacron.volume_translate import classes_of, written_kept
from novacron.families.wording import (
    amounts,
    as_the_schema_says,
    conditions_of,
    time_of,
    written_amounts,
    written_conditions,
    written_time,
)

__all__ = ["HostKind"]

Object = dict[str, Any]

# The driver whose hosts are clusters.
CLUSTER = "kubevirt"


class HostKind:
    """How a Host says "host"."""

    finalizer = "novacron.io/host"

    def host(self, obj: Object) -> DeclaredHost:
        """Return the host an object declares."""
        with as_the_schema_says():
            return _host(obj)

    def status(self, obj: Object, report: HostReport) -> Object:
        """Return the object's whole status after a round."""
        status: Object = dict(obj.get("status") or {})
        status["conditions"] = written_conditions(report.conditions)
        status["observedGeneration"] = obj["metadata"]["generation"]
        if report.facts is not None:
            status["allocatable"] = written_amounts(report.allocatable)
            status |= _written_facts(report.facts)
            status["storage"] = _written_storage(report.facts, obj.get("status") or {})
            status["storageClasses"] = _written_rooms(report.rooms)
        if report.capabilities is not None:
            status["capabilities"] = sorted(report.capabilities) or None
        if report.machines is not None:
            status["machines"] = report.machines
        status["evictions"] = _written_evictions(report.evictions)
        if report.node_marks is not None:
            status["node"] = _written_marks(report.node_marks)
        # It alone is no reason to write: a quiet host would be written about all the time.
        said = {name: value for name, value in status.items() if value is not None}
        if report.seen_at is not None and said != (obj.get("status") or {}):
            status["lastSeen"] = written_time(report.seen_at)
        return status


def _host(obj: Object) -> DeclaredHost:
    metadata, spec, status = obj["metadata"], obj["spec"], obj.get("status") or {}
    return DeclaredHost(
        uid=metadata["uid"],
        name=metadata["name"],
        driver=spec["driver"],
        endpoint=spec.get("endpoint"),
        credentials=(spec.get("credentialsSecret") or {}).get("name"),
        node=(spec.get("nodeRef") or {}).get("name"),
        settings=spec.get(spec["driver"]) or {},
        labels=spec.get("labels") or {},
        taints=_taints(spec.get("taints")),
        unschedulable=spec.get("unschedulable", False),
        drain=_drain(spec.get("drain")),
        overcommit=Overcommit(**(spec.get("overcommit") or {})),
        deleting="deletionTimestamp" in metadata,
        generation=metadata["generation"],
        conditions=conditions_of(status),
        allocatable=amounts(status.get("allocatable")),
        node_marks=_node_marks(status.get("node") or {}),
        devices=devices_of(status.get("devices")),
        cpu=_cpu(status),
        storage_ids=frozenset(status.get("storageIDs") or ()),
        own_storage=status.get("ownStorageID") or "",
        rooms=_rooms(status.get("storageClasses")),
        evictions=_evictions(status.get("evictions")),
        offers=frozenset((*_offers(status), *_storage(spec))),
    )


def _storage(spec: Object) -> Iterator[Offer]:
    """Return which storage classes it has; a cluster says itself when it lacks one."""
    if spec["driver"] == CLUSTER:
        yield Offer(OfferKind.STORAGE, "*")
    yield from classes_of(spec.get(spec["driver"]) or {})


def _drain(written: Object | None) -> Drain | None:
    if written is None:
        return None
    return Drain(written.get("stopAllowed", False), written.get("atOnce", 2))


def _cpu(status: Object) -> Cpu | None:
    written = status.get("cpu") or {}
    # What machines see there, which is not all that the host has.
    model = written.get("guestModel") or written.get("model")
    if not model:
        return None
    features = frozenset(written.get("guestFeatures") or ())
    return Cpu(model, features, status.get("accelerator") or "")


def _offers(status: Object) -> Iterator[Offer]:
    """Return what the host has that others may not; "*" for what nobody asked it about."""
    for name in status.get("capabilities", ("*",)):
        yield Offer(OfferKind.CAPABILITY, name)
    reached = status.get("networks")
    networks = [
        HostNetwork(each["name"], tuple(each.get("types") or ()), each.get("message") or "")
        for each in reached or ()
    ]
    for name in {"*"} if reached is None else network_offers(networks):
        yield Offer(OfferKind.NETWORK, name)


def _rooms(written: list[Object] | None) -> tuple[StorageRoom, ...]:
    return tuple(
        StorageRoom(
            each["name"],
            mib(each["allocatable"]),
            each.get("storageID") or "",
            each.get("message") or "",
        )
        for each in written or ()
    )


def _written_rooms(rooms: tuple[StorageRoom, ...]) -> list[Object] | None:
    return [
        {
            "name": room.storage_class,
            "allocatable": format_mib(room.allocatable_mib),
            **({"storageID": room.id} if room.id else {}),
            **({"message": room.trouble} if room.trouble else {}),
        }
        for room in rooms
    ] or None


def _node_marks(node: Object) -> NodeMarks:
    return NodeMarks(node.get("labels") or {}, _taints(node.get("taints")))


def _taints(written: list[Object] | None) -> tuple[Taint, ...]:
    return tuple(
        Taint(taint["key"], taint["effect"], taint.get("value") or "") for taint in written or ()
    )


def _evictions(written: list[Object] | None) -> tuple[Eviction, ...]:
    return tuple(
        Eviction(taint, since)
        for taint, each in zip(_taints(written), written or (), strict=True)
        if (since := time_of(each["since"])) is not None
    )


def _written_evictions(evictions: tuple[Eviction, ...]) -> list[Object] | None:
    return [
        {**_written_taint(each.taint), "since": written_time(each.since)} for each in evictions
    ] or None


def _written_taint(taint: Taint) -> Object:
    value = {"value": taint.value} if taint.value else {}
    return {"key": taint.key, "effect": taint.effect, **value}


def _written_marks(marks: NodeMarks) -> Object | None:
    if not marks.labels and not marks.taints:
        return None
    taints = [_written_taint(taint) for taint in marks.taints]
    written: Object = {"labels": dict(marks.labels)}
    return written | ({"taints": taints} if taints else {})


def _written_facts(facts: HostFacts) -> Object:
    return {
        "capacity": written_amounts(facts.capacity),
        "driverVersion": facts.version or None,
        "versions": dict(facts.versions) or None,
        "accelerator": facts.accelerator or None,
        "cpu": _written_cpu(facts) or None,
        "machineTypes": list(facts.machine_types) or None,
        "numa": [
            {"node": cell.node, "cpus": cell.cpus, "memory": format_mib(cell.memory_mib)}
            for cell in facts.numa
        ]
        or None,
        "devices": written_devices(facts.devices) or None,
        "networks": _written_networks(facts) or None,
        "keptVolumes": written_kept(facts.kept_volumes),
        "storageIDs": sorted(facts.storage_ids) or None,
        "ownStorageID": facts.own_storage or None,
    }


def _written_networks(facts: HostFacts) -> list[Object]:
    return [
        {
            "name": each.name,
            "types": list(each.types),
            **({"message": each.trouble} if each.trouble else {}),
        }
        for each in facts.networks or ()
    ]


def _written_cpu(facts: HostFacts) -> Object:
    said: Object = {
        "model": facts.cpu_model,
        "features": list(facts.cpu_features),
        "guestModel": facts.guest_cpu_model,
        "guestFeatures": list(facts.guest_cpu_features),
    }
    return {name: value for name, value in said.items() if value}


def _written_storage(facts: HostFacts, before: Object) -> list[Object] | None:
    """Return the host's storage; free room is written when it changed by a tenth of the whole."""
    known = {place["name"]: place for place in before.get("storage") or ()}
    return [_written_place(place, known.get(place.name) or {}) for place in facts.storage] or None


def _written_place(place: StorageFacts, before: Object) -> Object:
    free = before.get("available")
    if free is None or abs(mib(free) - place.available_mib) * 10 > place.capacity_mib:
        free = format_mib(place.available_mib)
    return {"name": place.name, "capacity": format_mib(place.capacity_mib), "available": free}
