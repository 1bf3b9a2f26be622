"""What a running machine has not yet of what its VirtualMachine says, and what that costs.

The rules are KubeVirt's: which fields a running instance takes, and which of those only a new
launcher can give it. Pure: a template and an instance in, changes out.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from novacron.core.change import Change, How
from novacron.core.quantity import format_mib, mib
from novacron.drivers.kubevirt.names import CLOUD_INIT
from novacron.drivers.kubevirt.sameness import difference
from novacron.drivers.kubevirt.settings import Settings
from novacron.drivers.kubevirt.view import by_name, condition

__all__ = ["DRAIN", "changes", "pluggable_disk", "pluggable_nic", "plugged"]

Object = dict[str, Any]

# Memory is plugged in by whole blocks, and into guests that have some already.
BLOCK_MIB = 2
LEAST_TO_PLUG_MIB = 1024
# How many times over a guest can grow unless the cluster says otherwise.
GROWTH = 4
VIRTIO = "virtio"
PLUGGABLE = (VIRTIO, "scsi")
CPU, MEMORY, DISKS, NICS, HARDWARE, DRAIN = (
    "the CPUs",
    "the memory",
    "the disks",
    "the interfaces",
    "the virtual hardware",
    "the migration policy",
)


@dataclass(frozen=True, slots=True)
class _Running:
    """An instance and what its cluster can do for it."""

    instance: Object
    settings: Settings

    def by_migration(self, part: str, what: str) -> Change:
        """Return a change that takes a move, or a restart where there can be none."""
        movable = condition(self.instance, "LiveMigratable")
        if not self.settings.live_update:
            why = "the KubeVirt cluster has no vmRolloutStrategy LiveUpdate"
            return Change(part, what, How.RESTART, why)
        if movable.get("status") == "False":
            why = f"it cannot move while it runs: {movable.get('message', '')}"
            return Change(part, what, How.RESTART, why)
        left = "" if self.settings.moves_by_itself else "the cluster moves none by itself: ask"
        return Change(part, what, How.MIGRATION, left)


def changes(wanted: Object, instance: Object, settings: Settings) -> tuple[Change, ...]:
    """Return all that a template says and a running instance has not, and what each costs."""
    running = _Running(instance, settings)
    has, wants = instance["spec"], wanted
    return (
        *_cpu(wants["domain"].get("cpu") or {}, running),
        *_memory(wants["domain"].get("memory") or {}, running),
        *_disks(wants, running),
        *_nics(wants, running),
        *_rest(has["domain"], wants["domain"]),
        *_on_drain(has, wants),
    )


def pluggable_disk(disk: Object, settings: Settings) -> str | None:
    """Return why a disk cannot be plugged into a running guest; None where it can."""
    if not settings.volumes_pluggable:
        return "the KubeVirt cluster has no feature HotplugVolumes"
    bus = (disk.get("disk") or {}).get("bus")
    if bus not in PLUGGABLE:
        return f"disks of type {bus or 'cdrom'} cannot be plugged in"
    return None


def pluggable_nic(nic: Object, network: Object) -> str | None:
    """Return why an interface cannot come or go while the guest runs; None where it can."""
    if "pod" in network:
        return "the pod network comes and goes with a restart only"
    if nic.get("model", VIRTIO) != VIRTIO:
        return f"interfaces of model {nic['model']} cannot be plugged in"
    return None


def plugged(instance: Object) -> frozenset[str]:
    """Return the disks that a machine got while it ran: only those can be taken away again."""
    return frozenset(
        each["name"]
        for each in instance["spec"].get("volumes") or ()
        if any(source.get("hotpluggable") for source in each.values() if isinstance(source, dict))
    )


def _cpu(wants: Mapping[str, int], running: _Running) -> Iterator[Change]:
    instance = running.instance
    asked = instance["spec"]["domain"].get("cpu") or {}
    has = (instance.get("status") or {}).get("currentCPUTopology") or asked
    before, after = _topology(has), _topology(wants)
    if before == after or not wants:
        return
    what = f"{_total(before)} to {_total(after)} CPUs"
    most = asked.get("maxSockets") or before[0] * GROWTH
    if before[1:] != after[1:]:
        why = "cores and threads of a socket are fixed while it runs"
        yield Change(CPU, what, How.RESTART, why)
    elif after[0] < before[0]:
        yield Change(CPU, what, How.RESTART, "CPUs cannot be taken from a running guest")
    elif after[0] > most:
        yield Change(CPU, what, How.RESTART, f"it was started with room for {most} sockets")
    else:
        yield running.by_migration(CPU, what)


def _topology(cpu: Mapping[str, int]) -> tuple[int, int, int]:
    return cpu.get("sockets", 1), cpu.get("cores", 1), cpu.get("threads", 1)


def _total(topology: tuple[int, int, int]) -> int:
    sockets, cores, threads = topology
    return sockets * cores * threads


def _memory(wants: Mapping[str, Any], running: _Running) -> Iterator[Change]:
    asked = running.instance["spec"]["domain"].get("memory") or {}
    status = (running.instance.get("status") or {}).get("memory") or {}
    has = status.get("guestCurrent") or asked.get("guest")
    if not has or "guest" not in wants or mib(has) == mib(wants["guest"]):
        return
    before, after = mib(has), mib(wants["guest"])
    at_boot = mib(status.get("guestAtBoot") or has)
    most = mib(asked["maxGuest"]) if asked.get("maxGuest") else at_boot * GROWTH
    what = f"{format_mib(before)} to {format_mib(after)} of memory"
    if after < at_boot:
        yield Change(MEMORY, what, How.RESTART, f"it was started with {format_mib(at_boot)}")
    elif after > most:
        why = f"it was started with room for {format_mib(most)}"
        yield Change(MEMORY, what, How.RESTART, why)
    elif at_boot < LEAST_TO_PLUG_MIB:
        why = "memory is plugged only into guests of 1Gi and more"
        yield Change(MEMORY, what, How.RESTART, why)
    elif after % BLOCK_MIB:
        yield Change(MEMORY, what, How.RESTART, "memory is plugged in by blocks of 2Mi")
    else:
        yield running.by_migration(MEMORY, what)


def _disks(wants: Object, running: _Running) -> Iterator[Change]:
    after = by_name(wants["domain"]["devices"].get("disks"))
    before = by_name(running.instance["spec"]["domain"]["devices"].get("disks"))
    for name in sorted(after.keys() - before.keys()):
        why = pluggable_disk(after[name], running.settings)
        if name == CLOUD_INIT:
            why = "what a guest is told about itself is there from its start on"
        yield Change(DISKS, f"disk {name} more", How.RESTART if why else How.LIVE, why or "")
    for name in sorted(before.keys() - after.keys()):
        fixed = name not in plugged(running.instance)
        why = "it was there when the machine was started" if fixed else ""
        yield Change(DISKS, f"disk {name} away", How.RESTART if fixed else How.LIVE, why)
    for name in sorted(before.keys() & after.keys()):
        if (where := difference(before[name], after[name])) is not None:
            what = "the boot order" if where == "bootOrder" else f"disk {name}"
            why = "" if where == "bootOrder" else "it stays what it is while it runs"
            yield Change(DISKS, what, How.RESTART, why)


def _nics(wants: Object, running: _Running) -> Iterator[Change]:
    instance = running.instance
    after = by_name(wants["domain"]["devices"].get("interfaces"))
    before = by_name(instance["spec"]["domain"]["devices"].get("interfaces"))
    there, here = by_name(wants.get("networks")), by_name(instance["spec"].get("networks"))
    for name in sorted((after.keys() - before.keys()) | (_unborn(instance) & after.keys())):
        yield _plugged_nic(f"interface {name} more", after[name], there[name], running)
    for name in sorted(before.keys() - after.keys()):
        yield _plugged_nic(f"interface {name} away", before[name], here[name], running)
    for name in sorted(before.keys() & after.keys()):
        where = difference(before[name], after[name]) or difference(here[name], there[name])
        if where == "bootOrder":
            yield Change(NICS, "the boot order", How.RESTART)
        elif where is not None:
            why = "it stays what it is while it runs"
            yield Change(NICS, f"interface {name}", How.RESTART, why)


def _unborn(instance: Object) -> set[str]:
    """Return the interfaces that wait for the instance to move before the guest has them."""
    if condition(instance, "MigrationRequired").get("status") != "True":
        return set()
    told = by_name((instance.get("status") or {}).get("interfaces"))
    asked = by_name(instance["spec"]["domain"]["devices"].get("interfaces"))
    return {name for name in asked if "domain" not in told.get(name, {}).get("infoSource", "")}


def _plugged_nic(what: str, nic: Object, network: Object, running: _Running) -> Change:
    if (why := pluggable_nic(nic, network)) is not None:
        return Change(NICS, what, How.RESTART, why)
    return running.by_migration(NICS, what)


def _on_drain(has: Object, wants: Object) -> Iterator[Change]:
    wanted = wants.get("evictionStrategy")
    if wanted and wanted != has.get("evictionStrategy"):
        what = "what becomes of it when its node is drained"
        yield Change(DRAIN, what, How.RESTART, "KubeVirt keeps that; none is made for it alone")


def _rest(has: Object, wants: Object) -> Iterator[Change]:
    names = ("machine", "features", "firmware")
    changed = [name for name in names if difference(has.get(name), wants.get(name) or {})]
    if changed:
        yield Change(HARDWARE, " and ".join(changed), How.RESTART, "")
