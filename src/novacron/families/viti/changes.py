"""What a changed Machine costs while it runs: nothing, a move to another node, or a restart.

The rules are KubeVirt's: which fields a running VirtualMachineInstance takes, and which of those
only a new launcher can give it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum

from novacron.core.quantity import format_mib
from novacron.families.viti.boot_order import boot_order
from novacron.families.viti.values import VIRTIO, Cpu, Disk, Nic, Resolved

__all__ = ["Change", "How", "Standing", "changes_between", "told", "worst"]

# Memory is plugged in by whole blocks, and into guests that have some already.
BLOCK_MIB = 2
LEAST_TO_PLUG_MIB = 1024
# How many times over a guest can grow unless the cluster says otherwise.
GROWTH = 4
PLUGGABLE = (VIRTIO, "scsi")


class How(IntEnum):
    """What a change costs, the dearest last."""

    LIVE = 0
    MIGRATION = 1
    RESTART = 2
    NEVER = 3


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that is to change, what that costs, and why it is not less."""

    what: str
    how: How
    why: str = ""


@dataclass(frozen=True, slots=True)
class Standing:
    """What the running machine and its cluster allow; figures of None are what KubeVirt sets.

    ``plugged`` are disks that it got while it ran: only those can be taken away again.
    """

    live_update: bool = True
    migratable: bool = True
    volumes_pluggable: bool = True
    disks_expandable: bool = True
    max_sockets: int | None = None
    memory_at_boot_mib: int | None = None
    max_memory_mib: int | None = None
    plugged: frozenset[str] = frozenset()


def changes_between(old: Resolved, new: Resolved, standing: Standing) -> tuple[Change, ...]:
    """Return everything that differs and what each costs; the same machine twice is nothing."""
    return (
        *_cpu(old.size.cpu, new.size.cpu, standing),
        *_memory(old.size.memory_mib, new.size.memory_mib, standing),
        *_disks(old.size.disks, new.size.disks, standing),
        *_nics(old.nics, new.nics, standing),
        *_rest(old, new),
    )


def worst(changes: Iterable[Change]) -> How:
    """Return what all the changes together cost."""
    return max((change.how for change in changes), default=How.LIVE)


def told(changes: Iterable[Change]) -> str:
    """Return the changes as a sentence of a condition."""
    return "; ".join(change.what + (f" ({change.why})" if change.why else "") for change in changes)


def _by_migration(what: str, standing: Standing) -> Change:
    if not standing.live_update:
        return Change(what, How.RESTART, "the KubeVirt cluster has no vmRolloutStrategy LiveUpdate")
    if not standing.migratable:
        return Change(what, How.RESTART, "the machine cannot move while it runs")
    return Change(what, How.MIGRATION)


def _cpu(old: Cpu, new: Cpu, standing: Standing) -> Iterator[Change]:
    before, after = old.topology, new.topology
    if before == after:
        return
    what = f"{old.total} to {new.total} CPUs"
    most = standing.max_sockets or before.sockets * GROWTH
    if (before.cores, before.threads) != (after.cores, after.threads):
        yield Change(what, How.RESTART, "cores and threads of a socket are fixed while it runs")
    elif after.sockets < before.sockets:
        yield Change(what, How.RESTART, "CPUs cannot be taken from a running guest")
    elif after.sockets > most:
        yield Change(what, How.RESTART, f"it was started with room for {most} sockets")
    else:
        yield _by_migration(what, standing)


def _memory(old_mib: int, new_mib: int, standing: Standing) -> Iterator[Change]:
    if old_mib == new_mib:
        return
    what = f"{format_mib(old_mib)} to {format_mib(new_mib)} of memory"
    at_boot = standing.memory_at_boot_mib or old_mib
    most = standing.max_memory_mib or at_boot * GROWTH
    if new_mib < at_boot:
        yield Change(what, How.RESTART, f"it was started with {format_mib(at_boot)}")
    elif new_mib > most:
        yield Change(what, How.RESTART, f"it was started with room for {format_mib(most)}")
    elif at_boot < LEAST_TO_PLUG_MIB:
        yield Change(what, How.RESTART, "memory is plugged only into guests of 1Gi and more")
    elif new_mib % BLOCK_MIB:
        yield Change(what, How.RESTART, "memory is plugged in by blocks of 2Mi")
    else:
        yield _by_migration(what, standing)


def _disks(old: tuple[Disk, ...], new: tuple[Disk, ...], standing: Standing) -> Iterator[Change]:
    before, after = ({disk.name: disk for disk in disks} for disks in (old, new))
    for name in sorted(after.keys() - before.keys()):
        yield _plugged_in(after[name], standing)
    for name in sorted(before.keys() - after.keys()):
        fixed = name not in standing.plugged
        why = "it was there when the machine was started" if fixed else ""
        yield Change(f"disk {name} away", How.RESTART if fixed else How.LIVE, why)
    for name in sorted(before.keys() & after.keys()):
        yield from _disk(before[name], after[name], standing)


def _plugged_in(disk: Disk, standing: Standing) -> Change:
    what = f"disk {disk.name} of {format_mib(disk.size_mib)} more"
    if not standing.volumes_pluggable:
        return Change(what, How.RESTART, "the KubeVirt cluster has no feature HotplugVolumes")
    if disk.bus not in PLUGGABLE:
        return Change(what, How.RESTART, f"disks of type {disk.bus} cannot be plugged in")
    return Change(what, How.LIVE)


def _disk(old: Disk, new: Disk, standing: Standing) -> Iterator[Change]:
    what = f"disk {new.name} of {format_mib(old.size_mib)} to {format_mib(new.size_mib)}"
    if new.size_mib < old.size_mib:
        yield Change(what, How.NEVER, "disks never shrink")
    elif new.size_mib > old.size_mib:
        grows = standing.disks_expandable
        why = "" if grows else "the KubeVirt cluster has no feature ExpandDisks"
        yield Change(what, How.LIVE if grows else How.RESTART, why)
    for name, field in (
        ("storageClass", "storage_class"),
        ("accessMode", "access_mode"),
        ("volumeMode", "volume_mode"),
    ):
        if getattr(old, field) != getattr(new, field):
            yield Change(f"{name} of disk {new.name}", How.NEVER, "a claim stays what it is")
    if old.bus != new.bus:
        yield Change(f"disk {new.name} from {old.bus} to {new.bus}", How.RESTART)


def _nics(old: tuple[Nic, ...], new: tuple[Nic, ...], standing: Standing) -> Iterator[Change]:
    before, after = ({nic.name: nic for nic in nics} for nics in (old, new))
    for name in sorted(after.keys() - before.keys()):
        yield _plugged(f"interface {name} more", after[name], standing)
    for name in sorted(before.keys() - after.keys()):
        yield _plugged(f"interface {name} away", before[name], standing)
    for name in sorted(before.keys() & after.keys()):
        if before[name] != after[name]:
            yield Change(f"interface {name}", How.RESTART, "it stays what it is while it runs")


def _plugged(what: str, nic: Nic, standing: Standing) -> Change:
    if nic.network is None:
        return Change(what, How.RESTART, "the pod network comes and goes with a restart only")
    if nic.model != VIRTIO:
        return Change(what, How.RESTART, f"interfaces of model {nic.model} cannot be plugged in")
    return _by_migration(what, standing)


def _rest(old: Resolved, new: Resolved) -> Iterator[Change]:
    if old.hardware != new.hardware:
        yield Change("domain", How.RESTART)
    if _moved(old, new):
        yield Change("boot order", How.RESTART)
    before, after = (None if each.ejected else each.iso for each in (old, new))
    if before != after:
        yield Change("install medium", How.RESTART, "it is there from one start to the next")


def _moved(old: Resolved, new: Resolved) -> bool:
    """Say whether a device that stays is to be tried earlier or later than before, or no more."""
    before, after = boot_order(old), boot_order(new)
    disks = {disk.name for disk in old.size.disks} & {disk.name for disk in new.size.disks}
    nics = {nic.name for nic in old.nics} & {nic.name for nic in new.nics}
    return any(before.disks.get(name) != after.disks.get(name) for name in disks) or any(
        before.nics.get(name) != after.nics.get(name) for name in nics
    )
