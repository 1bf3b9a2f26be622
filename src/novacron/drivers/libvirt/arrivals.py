"""What a host makes ready for a machine that comes, and does when it has come or not. Blocks.

Disks that both hosts reach are left alone. For others there is an empty one of the same size and
name, on top of the same image where the host has it, so that only what is the machine's own needs
to be copied.
"""

from dataclasses import dataclass

import libvirt

from novacron.core.errors import Busy, OutOfCapacity
from novacron.core.machine import MachinePlan, Power
from novacron.core.move import MoveProgress
from novacron.drivers.libvirt.belongings import Belonging, Belongings, pool_of, storage_marks
from novacron.drivers.libvirt.build import Builder
from novacron.drivers.libvirt.domain import console_log, console_past, volume_prefix
from novacron.drivers.libvirt.look import INCOMING, find
from novacron.drivers.libvirt.pool import Pool
from novacron.drivers.libvirt.travel import pools_of

__all__ = ["Reception", "cleared", "received", "settled"]

WHOLE = 100


@dataclass(frozen=True, slots=True)
class Reception:
    """How a machine is taken in; ``copied`` are the disks that must come too."""

    draft: str
    copied: tuple[str, ...]
    incremental: bool


def received(builder: Builder, plan: MachinePlan, belongings: Belongings) -> Reception:
    """Make ready for a machine."""
    builder.require_room(plan)
    domain = find(builder.pool.connection, plan.ref.uid)
    if domain is not None:
        if domain.power is Power.ON:
            raise Busy(f"{plan.ref.name} is on host {builder.host.name} already")
        builder.remove(plan.ref.uid, domain, disks=False)  # left by one that came to nothing
    draft = builder.draft(plan)
    pools = pools_of(draft)
    copied: list[str] = []
    incremental = True
    for disk in belongings.disks:
        name = pools.get(disk.target, builder.host.pool)
        pool = pool_of(builder.pool, name)
        if pool is None:
            raise OutOfCapacity(f"host {builder.host.name} has no storage pool {name}")
        if storage_marks(pool) & disk.marks:
            continue
        if disk.content is not None:
            pool.fill(disk.volume, len(disk.content), [disk.content])
            continue
        incremental &= _room_for(pool, disk)
        copied.append(disk.target)
    builder.pool.fill(console_log(plan.ref.uid), 0, [])
    return Reception(draft, tuple(copied), incremental)


def _room_for(pool: Pool, disk: Belonging) -> bool:
    """Make an empty disk; say whether it is on top of the same image as the one that comes."""
    pool.remove(disk.volume)
    base = _same_image(pool, disk.backing)
    if base is not None:
        pool.overlay_bytes(disk.volume, disk.capacity, base, base.name().rpartition(".")[2])
    else:
        pool.empty(disk.volume, disk.capacity, disk.format)
    return disk.backing is None or base is not None


def _same_image(pool: Pool, name: str | None) -> libvirt.virStorageVol | None:
    """Return the volume with the image that another host calls so, where it is complete here.

    An image's name begins with what its bytes amount to; only its end differs from host to host.
    """
    if name is None or not name.startswith("image-"):
        return None
    stem = name.rpartition("-")[0] + "-"
    names = pool.names()
    complete = {each.rsplit(".", 2)[0] for each in names if each.endswith(".ok")}
    found = sorted(each for each in names & complete if each.startswith(stem))
    return pool.find(found[0]) if found else None


def settled(
    builder: Builder, plan: MachinePlan, belongings: Belongings | None, *, live: bool
) -> MoveProgress:
    """Make a machine that has come one of the host's own."""
    uid = plan.ref.uid
    domain = find(builder.pool.connection, uid)
    if domain is None or (domain.state, domain.reason) == INCOMING:
        raise Busy(f"{plan.ref.name} is not on host {builder.host.name} yet")
    took = _took(domain.handle) if domain.power is Power.ON else MoveProgress(WHOLE)
    if not live and domain.power is Power.ON:
        domain.handle.destroy()
        domain = find(builder.pool.connection, uid)
        assert domain is not None
    _remember(builder.pool, uid, belongings)
    builder.change(plan, domain)
    return took


def _remember(pool: Pool, uid: str, belongings: Belongings | None) -> None:
    """Keep what the guest said on the host that it has left, unless both keep it in one file."""
    if belongings is None or not belongings.said or pool.find(console_past(uid)):
        return
    if not belongings.said_in & storage_marks(pool):
        pool.fill(console_past(uid), len(belongings.said), [belongings.said])


def _took(handle: libvirt.virDomain) -> MoveProgress:
    try:
        stats = handle.jobStats(libvirt.VIR_DOMAIN_JOB_STATS_COMPLETED)
    except libvirt.libvirtError:
        return MoveProgress(WHOLE)
    return MoveProgress(WHOLE, stats.get("data_processed"), stats.get("downtime"))


def cleared(builder: Builder, uid: str, kept: Belongings) -> None:
    """Remove what is left of a machine that is elsewhere, and has its disks there."""
    domain = find(builder.pool.connection, uid)
    pools = {disk.target: disk.pool for disk in kept.disks}
    if domain is not None:
        pools |= pools_of(domain.handle.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE))
    builder.remove(uid, domain, disks=False)
    for disk in kept.disks:
        pool = pool_of(builder.pool, pools.get(disk.target, builder.host.pool))
        if pool is not None and not storage_marks(pool) & disk.marks:
            pool.remove(disk.volume)
    if not storage_marks(builder.pool) & kept.said_in:
        builder.pool.remove_all(volume_prefix(uid))
