"""What a Machine of ``vitistack.io/v1alpha1`` means to the core, and back.

Its machines are made in a KubeVirt cluster, which places them itself; so nothing is reserved for
them, and where they are is an address. Reads objects as the API server stores them.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from novacron.core.declaration import Declaration
from novacron.core.errors import Rejected
from novacron.core.hardware import Hardware, Topology
from novacron.core.image import Media
from novacron.core.machine import FirstDisk, Holding, Machine, Nic, Power, Resources
from novacron.core.move import Move
from novacron.core.report import MachineReport
from novacron.core.segment import Segment
from novacron.core.surroundings import Reference, Surroundings
from novacron.core.volume import Access, Reclaim, Volume
from novacron.families.move_record import (
    MIGRATE_CANCEL,
    last_move,
    move_of,
    request_of,
    with_move,
    without_move,
)
from novacron.families.snapshot_record import wishes_of
from novacron.families.update import restart_allowed, restart_at_once
from novacron.families.viti import values
from novacron.families.viti.addresses import addresses_of
from novacron.families.viti.class_pin import class_changed, is_recorded, recorded
from novacron.families.viti.cloud_init import told_by
from novacron.families.viti.marks import ABANDON, FINALIZER, owned_labels
from novacron.families.viti.nics import attachment_of, nics_of
from novacron.families.viti.pin import asked_for, checked, pin_of, pinned
from novacron.families.viti.resolve import is_ours, resolve
from novacron.families.viti.status_translate import refused, written
from novacron.families.viti.templates import DEFAULT_CLASS
from novacron.families.wording import as_the_schema_says, conditions_of

__all__ = ["MachineKind"]

Object = dict[str, Any]

API_VERSION, KIND, NETWORK_KIND = "vitistack.io/v1alpha1", "Machine", "NetworkConfiguration"
NETWORKS, CLASSES = "networkconfigurations", "machineclasses"


class _Nothing:
    """Nothing is beside an object, as far as anybody said."""

    def get(self, reference: Reference) -> Object | None:
        """Find nothing."""
        del reference
        return None

    def every(self, plural: str) -> tuple[Object, ...]:
        """Find nothing."""
        del plural
        return ()


NOTHING = _Nothing()


@dataclass(frozen=True, slots=True)
class MachineKind:
    """How a Machine says "machine"."""

    surroundings: Surroundings = NOTHING
    finalizer: str = FINALIZER

    def amid(self, surroundings: Surroundings) -> "MachineKind":
        """Return the kind with a way to find what its objects refer to."""
        return replace(self, surroundings=surroundings)

    def references(self, obj: Object) -> list[Reference]:
        """Return what a Machine refers to: its networks, and classes, any of which may be its."""
        metadata = obj["metadata"]
        names = [nic.network for nic in nics_of(obj["spec"], metadata["uid"])]
        found = [Reference(NETWORKS, metadata["namespace"], name) for name in names if name]
        return [*found, Reference(CLASSES, "", "")]

    def machine(self, obj: Object) -> Machine:
        """Return the machine an object declares; raise Rejected when it cannot be one yet."""
        with as_the_schema_says():
            return self._machine(obj)

    def holding(self, obj: Object) -> Holding | None:
        """Return where its machine is: once it was made, where that was.

        None for a machine of another provider: somebody else looks after it.
        """
        if not is_ours(obj["spec"]):
            return None
        metadata = obj["metadata"]
        where = pin_of(obj) or asked_for(obj)
        return Holding(metadata["uid"], where.address(metadata["namespace"]), Resources())

    def is_claimed(self, obj: Object) -> bool:
        """Say whether all is written down that is to be before its machine is made or changed."""
        return FINALIZER in (obj["metadata"].get("finalizers") or ()) and is_recorded(obj)

    def claimed(self, obj: Object, identity: str) -> Object:
        """Return the object with our finalizer and the record of where its machine is made.

        And of what it is made by: a class may say something else later.
        """
        found = pinned(obj, identity)
        notes = found["metadata"]["annotations"] | recorded(obj, self._classes())
        return {**found, "metadata": {**found["metadata"], "annotations": notes}}

    def status(self, obj: Object, machine: Machine, report: MachineReport) -> Object:
        """Return the object's whole status after a round."""
        return written(obj, machine, report, class_changed(obj, self._classes()))

    def refusal(self, obj: Object, why: Rejected, now: datetime) -> Object:
        """Return the whole status of an object that cannot be a machine, or not yet."""
        return refused(obj, why, now)

    def relocating(self, obj: Object, order: Move | None) -> Object:
        """Return the object with the record of an order in place of all requests; None is none."""
        return without_move(obj) if order is None else with_move(obj, order)

    def _machine(self, obj: Object) -> Machine:
        metadata, spec, status = obj["metadata"], obj["spec"], obj.get("status") or {}
        checked(obj)
        decided = resolve(obj, self._classes(), new=not status.get("vmName"))
        size, strategy = decided.size, spec.get("updateStrategy") or {}
        first = next(disk for disk in size.disks if disk.boot)
        # Disks are the cluster's own business: only the first one counts as the machine's size.
        wanted = Resources(size.cpu.total, size.memory_mib, first.size_mib)
        order, over = move_of(obj)
        holding = self.holding(obj)
        assert holding is not None
        return Machine(
            uid=metadata["uid"],
            namespace=metadata["namespace"],
            name=metadata["name"],
            wanted=wanted,
            reserved=wanted,
            host=holding.host,
            made_by=(pin_of(obj) or asked_for(obj)).cluster,
            abandoned=(metadata.get("annotations") or {}).get(ABANDON) == "true",
            image=decided.image.source if decided.image else "",
            checksum=decided.image.checksum if decided.image else None,
            power=Power.ON if spec.get("running", True) else Power.OFF,
            generation=metadata["generation"],
            seen_generation=status.get("observedGeneration", 0),
            deleting="deletionTimestamp" in metadata,
            nics=tuple(self._nic(nic, metadata["namespace"]) for nic in decided.nics),
            told=told_by(spec),
            volumes=tuple(_volume(disk) for disk in size.disks if disk is not first),
            first_disk=_first(first),
            hardware=_hardware(decided),
            restart_allowed=restart_allowed(strategy),
            restart_at_once=restart_at_once(strategy),
            live_migration_allowed=_may_migrate(spec),
            move_request=request_of(obj),
            move_cancelled=MIGRATE_CANCEL in (metadata.get("annotations") or {}),
            relocation=order,
            move_over=over,
            last_move=last_move(status),
            snapshots=wishes_of(spec, status),
            media=_media(decided),
            conditions=conditions_of(status),
            declared_by=_declaration(metadata),
        )

    def _classes(self) -> dict[str, Object]:
        return {each["metadata"]["name"]: each["spec"] for each in self.surroundings.every(CLASSES)}

    def _nic(self, nic: values.Nic, namespace: str) -> Nic:
        plain = Nic("", name=nic.name, mac=nic.mac, model=nic.model)
        if nic.network is None:
            return plain
        found = self.surroundings.get(Reference(NETWORKS, namespace, nic.network))
        if found is None:
            raise Rejected(
                f"there is no NetworkConfiguration {nic.network} in namespace {namespace}: create "
                "it, or take the network off the Machine",
                reason="NetworkConfigurationNotFound",
            )
        attachment = attachment_of(nic.network, found["spec"])
        told = addresses_of(found, nic.mac)
        plain = replace(
            plain,
            address=told.address,
            gateway=told.gateway,
            address6=told.address6,
            gateway6=told.gateway6,
            dns_servers=told.dns_servers,
        )
        if attachment.existing is not None:
            return replace(plain, network=attachment.existing)
        segment = Segment(attachment.bridge, attachment.vlan, _declared(found))
        return replace(plain, network=nic.network, segment=segment)


def _declared(network: Object) -> Declaration:
    name, uid = network["metadata"]["name"], network["metadata"]["uid"]
    return Declaration(API_VERSION, NETWORK_KIND, name, uid)


def _first(disk: values.Disk) -> FirstDisk:
    return FirstDisk(disk.name, disk.storage_class, _access(disk), _block(disk), disk.bus)


def _volume(disk: values.Disk) -> Volume:
    return Volume(
        disk.name,
        disk.size_mib,
        # Without a class it would be the host's own storage, of which a cluster has none.
        disk.storage_class or DEFAULT_CLASS,
        _access(disk),
        Reclaim.RETAIN if disk.retain else Reclaim.DELETE,
        block=_block(disk),
        bus=disk.bus,
    )


def _access(disk: values.Disk) -> Access | None:
    return Access(disk.access_mode) if disk.access_mode else None


def _block(disk: values.Disk) -> bool | None:
    return None if disk.volume_mode is None else disk.volume_mode == "Block"


def _may_migrate(spec: Object) -> bool:
    return bool((spec.get("migrationPolicy") or {}).get("allowLiveMigration", True))


def _media(decided: values.Resolved) -> Media:
    credentials = decided.image.credentials if decided.image else None
    return Media(credentials, None if decided.ejected else decided.iso)


def _hardware(decided: values.Resolved) -> Hardware:
    asked, topology = decided.hardware, decided.size.cpu.topology
    return Hardware(
        topology=Topology(topology.sockets, topology.cores, topology.threads),
        machine_type=asked.machine_type,
        efi=asked.efi,
        secure_boot=asked.secure_boot,
        acpi=asked.acpi,
        apic=asked.apic,
        hyperv=asked.hyperv,
        boot_order=decided.boot_order,
    )


def _declaration(metadata: Object) -> Declaration:
    """Return who declares a machine, as its KubeVirt objects name their owner."""
    name = metadata["name"]
    return Declaration(API_VERSION, KIND, name, metadata["uid"], owned_labels(name))
