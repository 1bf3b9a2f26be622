"""What a host makes ready for a machine that comes, and does when it has come or not. Blocks.

Disks that both hosts reach are left alone. For others there is an empty one of the same size and
name, into which libvirt copies. It is on top of no image: libvirt copies only what differs from
one where it is told a file's path, and we know pools. Until the machine has come there is a file
beside it that says so: nobody is to take half of a disk for one. One with snapshots within comes as
the file that it is.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

import libvirt

from novacron.core.errors import Busy, OutOfCapacity, Rejected
from novacron.core.machine import MachinePlan, Power
from novacron.core.migration import DISKS_OUT_OF_REACH, HAS_SNAPSHOTS
from novacron.core.move import MoveProgress
from novacron.drivers.libvirt.belongings import (
    Belonging,
    Belongings,
    Marks,
    Unplugged,
    pool_of,
    refresh,
    standing_pools,
    storage_marks,
)
from novacron.drivers.libvirt.build import Builder
from novacron.drivers.libvirt.disk_files import clear_bases, what_goes_with
from novacron.drivers.libvirt.domain import console_log, console_past, root_volume, volume_prefix
from novacron.drivers.libvirt.homecoming import end_or_unmark, is_sent, settled_in
from novacron.drivers.libvirt.look import find
from novacron.drivers.libvirt.pool import Pool
from novacron.drivers.libvirt.storage import COMING
from novacron.drivers.libvirt.travel import pools_of

__all__ = ["Reception", "cleared", "out_of_reach", "received", "settled"]

WHOLE = 100
SNAPSHOTS_AGAIN = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Reception:
    """How a machine is taken in; ``copied`` are the disks that must come too.

    ``pools`` tells where each of its files is here. ``left`` are volumes that would have to come as
    well, and do not with a guest that runs without them. ``whole`` are those of the copied that
    have snapshots within, which come along only with a machine that is off.
    """

    draft: str
    pools: Mapping[str, str]
    copied: tuple[str, ...]
    left: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()


def received(builder: Builder, plan: MachinePlan, belongings: Belongings) -> Reception:
    """Make ready for a machine."""
    builder.require_room(plan)
    if belongings.foreign:
        raise Rejected(
            f"{belongings.foreign} snapshots were taken of it that are not ours: delete them with "
            "virsh snapshot-delete first",
            reason=HAS_SNAPSHOTS,
        )
    domain = find(builder.pool.connection, plan.ref.uid)
    if domain is not None:
        if domain.power is Power.ON:
            raise Busy(f"{plan.ref.name} is on host {builder.host.name} already")
        builder.remove(plan.ref.uid, domain, disks=False)  # left by one that came to nothing
    coming = {disk.volume for disk in belongings.disks} | {it.file for it in belongings.unplugged}
    draft = builder.draft(plan, frozenset(coming))
    pools = belongings.pools_on(builder.host) | pools_of(draft)
    marks = Marks()
    if not marks.of(builder.pool) & belongings.said_in:
        clear_bases(builder.pool, plan.ref.uid)
    copied = [it for it in belongings.disks if _comes(builder, pools, it, belongings, marks)]
    whole = tuple(it.target for it in copied if belongings.has_snapshots_in(it))
    if whole:
        _take_papers(builder.pool, belongings, marks)
    builder.pool.fill(console_log(plan.ref.uid), 0, [])
    left = (it.name for it in belongings.unplugged if not _is_seen(builder, pools, it, marks))
    return Reception(draft, pools, tuple(it.target for it in copied), tuple(left), whole)


def _take_papers(pool: Pool, belongings: Belongings, marks: Marks) -> None:
    """Write down what is to be known of snapshots within disks that come."""
    if not marks.of(pool) & belongings.said_in:
        for name, content in belongings.papers.items():
            pool.fill(name, len(content), [content])


def _is_seen(builder: Builder, pools: Mapping[str, str], volume: Unplugged, marks: Marks) -> bool:
    pool = pool_of(builder.pool, pools[volume.file]) if volume.file in pools else None
    return pool is not None and bool(marks.of(pool) & volume.marks)


def _comes(
    builder: Builder,
    pools: Mapping[str, str],
    disk: Belonging,
    belongings: Belongings,
    marks: Marks,
) -> bool:
    """Make ready for a disk; say whether it has to come too."""
    if (name := pools.get(disk.volume)) is None:
        raise OutOfCapacity(
            f"host {builder.host.name} has no storage class {belongings.classes[disk.volume]}, of "
            f"which {disk.volume} is, and the guest has not let go of it"
        )
    return _is_to_be_copied(builder, name, disk, belongings, marks)


def _is_to_be_copied(
    builder: Builder, name: str, disk: Belonging, belongings: Belongings, marks: Marks
) -> bool:
    """Make ready for a disk; say whether it has to come too."""
    host, pool = builder.host.name, pool_of(builder.pool, name)
    if pool is None:
        raise OutOfCapacity(f"host {host} has no storage pool {name}")
    if marks.of(pool) & disk.marks:
        return False
    if disk.content is not None:
        pool.fill(disk.volume, len(disk.content), [disk.content])
        return False
    if disk.common:
        raise Rejected(
            f"host {host} does not see volume {disk.volume}, which other machines may have too, so "
            "that a copy of it would be another volume: have both hosts see one storage, or take "
            "the volume off the machine",
            reason=DISKS_OUT_OF_REACH,
        )
    if not _was_coming(pool, disk.volume) and pool.find(disk.volume) is not None:
        raise Rejected(
            f"host {host} has a file {disk.volume} in pool {name}, which no move left there and "
            "which may have data of its own: move it away or delete it there first",
            reason="VolumeExists",
        )
    if belongings.changing:
        # What is taken before it goes would be in no copy, and go with the disk that it is in.
        raise Busy("somebody is at its snapshots", SNAPSHOTS_AGAIN)
    pool.fill(f"{disk.volume}{COMING}", 0, [])
    pool.remove(disk.volume)
    pool.empty(disk.volume, *disk.as_made)
    return True


def out_of_reach(builder: Builder, plan: MachinePlan) -> str | None:
    """Return which disk of a machine that was elsewhere is not in a pool of this host, if any.

    Nor is one of which only a part has come.
    """
    try:
        places = builder.storage.places(plan, Rejected)
    except Rejected as error:
        return str(error)
    disks = {"its first disk": (builder.pool, root_volume(plan.ref.uid))}
    for volume, place, file in places.values():
        disks[f"its volume {volume.name}"] = builder.storage.pool(place), file
    for what, (pool, file) in disks.items():
        refresh(pool)
        if pool.find(file) is None:
            return what
        if pool.find(f"{file}{COMING}") is not None:
            return f"{what}, which came only in part"
    return None


def settled(builder: Builder, plan: MachinePlan, belongings: Belongings | None) -> MoveProgress:
    """Make a machine that has come one of the host's own."""
    uid = plan.ref.uid
    domain = find(builder.pool.connection, uid)
    if domain is None or domain.is_coming:
        raise Busy(f"{plan.ref.name} is not on host {builder.host.name} yet")
    took = _took(domain.handle) if domain.power is Power.ON else MoveProgress(WHOLE)
    if is_sent(domain):
        end_or_unmark(domain)
        domain = find(builder.pool.connection, uid)
        assert domain is not None
    _remember(builder.pool, uid, belongings, storage_marks(builder.pool))
    domain = settled_in(builder.pool, domain)
    with suppress(Rejected, OutOfCapacity):
        # What its owner asked for meanwhile may be refused, which is told once it is at home here.
        builder.change(plan, domain)
    return took


def _remember(pool: Pool, uid: str, belongings: Belongings | None, marks: frozenset[str]) -> None:
    """Keep what the guest said on the host that it has left, unless both keep it in one file.

    One who died may have made the file and filled less of it, or cleared some of it where it was.
    """
    if belongings is None or not belongings.said or belongings.said_in & marks:
        return
    past = console_past(uid)
    if len(pool.read(past).rstrip(b"\0")) < len(belongings.said):
        pool.remove(past)
        pool.fill(past, len(belongings.said), [belongings.said])


def _took(handle: libvirt.virDomain) -> MoveProgress:
    try:
        stats = handle.jobStats(libvirt.VIR_DOMAIN_JOB_STATS_COMPLETED)
    except libvirt.libvirtError:
        return MoveProgress(WHOLE)
    return MoveProgress(WHOLE, stats.get("data_processed"), stats.get("downtime"))


def cleared(builder: Builder, uid: str, kept: Belongings, *, was_home: bool) -> None:
    """Remove what is left of a machine that is elsewhere, and has its disks there.

    Where it never was at home, a disk goes only if a move left it.
    """
    domain = find(builder.pool.connection, uid)
    pools = kept.pools_on(builder.host)  # by class: the other host's pools may have other names
    if domain is not None:
        pools |= pools_of(domain.handle.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE))
    builder.remove(uid, domain, disks=False)
    marks = Marks()
    for disk in kept.disks:
        pool = None if disk.common else _left_in(builder.pool, pools.get(disk.volume), disk, marks)
        if pool is None:
            continue
        if was_home or _was_coming(pool, disk.volume):
            pool.remove(disk.volume)
            pool.remove(f"{disk.volume}{COMING}")  # last: without it the disk is not known again
    if not marks.of(builder.pool) & kept.own_marks(uid):
        root = root_volume(uid)
        is_ours = was_home or _was_coming(builder.pool, root) or builder.pool.find(root) is None
        spared = frozenset() if is_ours else frozenset({root}) | what_goes_with(builder.pool, uid)
        builder.pool.remove_all(volume_prefix(uid), except_for=spared)


def _left_in(own: Pool, name: str | None, disk: Belonging, marks: Marks) -> Pool | None:
    """Return the pool in which a disk was left that is elsewhere too; None where it is the same.

    That is its class's, unless the class had another one before.
    """
    meant = None if name is None else pool_of(own, name)
    if meant is not None and marks.of(meant) & disk.marks:
        return None
    if meant is None or meant.find(disk.volume) is None:
        for pool in standing_pools(own.connection):
            if pool.find(disk.volume) is not None:
                return None if marks.of(pool) & disk.marks else pool
    return meant


def _was_coming(pool: Pool, volume: str) -> bool:
    """Say whether a move left a disk; it says so before it makes one."""
    return pool.find(f"{volume}{COMING}") is not None
