"""What a plan looks like as a VirtualMachine.

Pure: the same plan is the same object. Sizes are given as sockets, because those are what a
running guest can get more of.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import orjson

from novacron.core.cloud_init import Told
from novacron.core.declaration import Declaration
from novacron.core.hardware import Hardware, Topology
from novacron.core.machine import MachinePlan, Nic
from novacron.core.quantity import format_mib
from novacron.drivers.kubevirt.names import (
    APPLIED,
    CLOUD_INIT,
    ISO,
    MACHINES,
    RECIPE,
    UID,
    claim_name,
    secret_name,
)

__all__ = [
    "boot_places",
    "has_addresses",
    "is_pod_network",
    "marks",
    "owned_by",
    "template",
    "virtual_machine",
]

Object = dict[str, Any]

DISK, NETWORK, CDROM = "disk", "network", "cdrom"
# How many places each class takes in the order in which devices are tried.
ROOM = {DISK: 1, CDROM: 1, NETWORK: 32}
POD_NETWORKS = ("", "default", "pod")
# What becomes of a machine whose node is drained. It is said of every one, because a cluster where
# nobody said anything stops them all.
MOVES, STAYS = "LiveMigrateIfPossible", "None"
# What Microsoft's guests run better with, and no other guest minds.
ENLIGHTENED = {"relaxed": {}, "vapic": {}, "spinlocks": {"spinlocks": 8191}}


def virtual_machine(plan: MachinePlan, *, owned: bool) -> Object:
    """Return the VirtualMachine of a plan; ``owned`` where its declaration is in this cluster."""
    wanted = template(plan)
    return {
        "apiVersion": MACHINES.api_version,
        "kind": MACHINES.kind,
        "metadata": {
            "name": plan.ref.name,
            "namespace": plan.ref.namespace,
            "annotations": {RECIPE: plan.recipe, APPLIED: orjson.dumps(wanted).decode()},
            **marks(plan, owned=owned),
        },
        "spec": {
            "runStrategy": "Always" if plan.start else "Halted",
            "template": wanted,
        },
    }


def marks(plan: MachinePlan, *, owned: bool) -> Object:
    """Return by what anything that is made for a machine is known as the machine's."""
    declared = plan.declared_by
    labels = {**(declared.labels if declared else {}), UID: plan.ref.uid}
    return {"labels": labels} | (owned_by(declared) if owned else {})


def owned_by(declared: Declaration | None) -> Object:
    """Return what has the cluster remove an object together with what declared it."""
    if declared is None:
        return {}
    owner = {
        "apiVersion": declared.api_version,
        "kind": declared.kind,
        "name": declared.name,
        "uid": declared.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {"ownerReferences": [owner]}


def template(plan: MachinePlan) -> Object:
    """Return what an instance of the machine is like."""
    nics = _named(plan.nics or (Nic("", name="default"),))
    order = boot_places(plan.hardware.boot_order or _usual(plan), [nic.name for nic in nics])
    boots = {plan.first_disk.name: order.get(DISK)}
    disks = [_disk(name, bus, boots.get(name)) for name, bus in _disks(plan)]
    volumes: list[Object] = [
        {"name": name, "persistentVolumeClaim": {"claimName": claim_name(plan.ref, name)}}
        for name, _ in _disks(plan)
    ]
    if plan.media.install is not None:
        disks.append(_drive(order.get(CDROM)))
        claim = {"claimName": claim_name(plan.ref, ISO)}
        volumes.append({"name": ISO, "persistentVolumeClaim": claim})
    if (told := _cloud_init(plan)) is not None:
        disks.append(_disk(CLOUD_INIT, None, None))
        volumes.append({"name": CLOUD_INIT, **told})
    domain = {
        **_processor_and_memory(plan),
        **_hardware(plan.hardware),
        "devices": {
            "disks": disks,
            "interfaces": [_interface(nic, order.get(nic.name)) for nic in nics],
            "networkInterfaceMultiqueue": True,
        },
    }
    domain["firmware"] = {"uuid": plan.ref.uid, **domain.get("firmware", {})}
    declared = plan.declared_by
    return {
        "metadata": {"labels": {**(declared.labels if declared else {}), UID: plan.ref.uid}},
        "spec": {
            "domain": domain,
            "networks": [_network(nic) for nic in nics],
            "volumes": volumes,
            "evictionStrategy": MOVES if plan.may_move else STAYS,
        },
    }


def has_addresses(plan: MachinePlan) -> bool:
    """Say whether some interface is not simply set up by asking its network."""
    return any(not nic.plain for nic in plan.nics)


def _named(nics: Sequence[Nic]) -> list[Nic]:
    """Return interfaces that all have a name, as KubeVirt wants it."""
    return [replace(nic, name=nic.name or f"net{number}") for number, nic in enumerate(nics)]


def is_pod_network(nic: Nic) -> bool:
    """Say whether an interface is on the network that all pods have."""
    return nic.segment is None and nic.network in POD_NETWORKS


def _disks(plan: MachinePlan) -> Iterator[tuple[str, str | None]]:
    """Return each disk's name and how the guest is to see it."""
    yield plan.first_disk.name, plan.first_disk.bus
    for volume in plan.volumes or ():
        yield volume.name, volume.bus


def boot_places(classes: Sequence[str], nics: Sequence[str]) -> dict[str, int]:
    """Return when the disk, the medium and each interface is tried; no two at the same time.

    Devices that come or go while the machine runs must not move the others, so a class takes its
    places whether there is a device for each or not.
    """
    places: dict[str, int] = {}
    at = 1
    for each in classes:
        if each == NETWORK:
            places |= {name: at + number for number, name in enumerate(nics)}
        else:
            places[each] = at
        at += ROOM[each]
    return places


def _usual(plan: MachinePlan) -> tuple[str, ...]:
    """Return the order where none was asked for.

    The disk comes before the medium, so that what was installed starts; an empty one is passed
    over. The network is for machines that have nothing else.
    """
    return (DISK, CDROM) if plan.image or plan.media.install else (DISK, NETWORK)


def _disk(name: str, bus: str | None, boot: int | None) -> Object:
    wanted: Object = {"name": name, "disk": {"bus": bus or "virtio"}}
    return wanted | ({"bootOrder": boot} if boot else {})


def _drive(boot: int | None) -> Object:
    wanted: Object = {"name": ISO, "cdrom": {"bus": "sata"}}
    return wanted | ({"bootOrder": boot} if boot else {})


def _cloud_init(plan: MachinePlan) -> Object | None:
    """Return how the guest finds what it is told; None where that is nothing.

    Always a Secret: what is written into the object itself may have 2048 bytes, for all to read.
    """
    told = plan.told or Told()
    about_network = bool(told.network_data or told.network_source) or has_addresses(plan)
    if not (plan.user_data or told.user_data or told.user_source or about_network):
        return None
    secret = {"name": secret_name(plan.ref)}
    source = {"secretRef": secret} | ({"networkDataSecretRef": secret} if about_network else {})
    return {"cloudInitConfigDrive" if told.config_drive else "cloudInitNoCloud": source}


def _processor_and_memory(plan: MachinePlan) -> Object:
    # Sockets are all that a running guest can get more of.
    cpus = plan.hardware.topology or Topology(sockets=plan.resources.vcpus)
    return {
        "cpu": {"sockets": cpus.sockets, "cores": cpus.cores, "threads": cpus.threads},
        "memory": {"guest": format_mib(plan.resources.memory_mib)},
    }


def _hardware(hardware: Hardware) -> Object:
    wanted: Object = {"machine": {"type": hardware.machine_type or "q35"}}
    features: Object = {
        name: {"enabled": asked}
        for name, asked in (("acpi", hardware.acpi), ("apic", hardware.apic))
        if asked is not None
    }
    if hardware.hyperv:
        features["hyperv"] = ENLIGHTENED
    if hardware.secure_boot:
        features["smm"] = {"enabled": True}  # what is secured would be open to the guest without
    if features:
        wanted["features"] = features
    if hardware.efi or hardware.secure_boot:
        wanted["firmware"] = {"bootloader": {"efi": {"secureBoot": hardware.secure_boot}}}
    return wanted


def _interface(nic: Nic, boot: int | None) -> Object:
    binding: Object = {"masquerade": {}} if is_pod_network(nic) else {"bridge": {}}
    return {
        "name": nic.name,
        "model": nic.model or "virtio",
        **binding,
        **({"macAddress": nic.mac} if nic.mac else {}),
        **({"bootOrder": boot} if boot else {}),
    }


def _network(nic: Nic) -> Object:
    if is_pod_network(nic):
        return {"name": nic.name, "pod": {}}
    return {"name": nic.name, "multus": {"networkName": nic.network}}
