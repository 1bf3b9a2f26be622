"""What is done once for a machine that has come from another host, or did not go after all.

It says so of itself, where it is written down or in its running guest, until somebody has done it:
whoever was to do it may have died, or its host was switched off in between. Blocks.
"""

from datetime import timedelta

import libvirt

from novacron.core.errors import Busy
from novacron.core.machine import Power
from novacron.core.migration import DISK_LOST
from novacron.drivers.libvirt.belongings import pool_of, refresh
from novacron.drivers.libvirt.disk_files import put_on_base
from novacron.drivers.libvirt.domain import root_volume
from novacron.drivers.libvirt.look import Domain, read
from novacron.drivers.libvirt.pool import Pool
from novacron.drivers.libvirt.snapshot_book import take_out
from novacron.drivers.libvirt.storage import COMING
from novacron.drivers.libvirt.travel import SENT, disks_of, is_marked_as_sent, unmarked

__all__ = ["end_or_unmark", "is_sent", "set_right", "settled_in"]

STOPPED = (libvirt.VIR_DOMAIN_PAUSED, libvirt.VIR_DOMAIN_PAUSED_IOERROR)
DISK_AGAIN = timedelta(seconds=10)
WRITTEN = libvirt.VIR_DOMAIN_XML_INACTIVE | libvirt.VIR_DOMAIN_XML_SECURE


def is_sent(domain: Domain) -> bool:
    """Say whether a guest says that it is up for nothing but to be sent."""
    return domain.running is not None and is_marked_as_sent(domain.running.text)


def set_right(pool: Pool, domain: Domain) -> Domain:
    """Have a machine be at home that a move left half-way, here or where it was to go."""
    is_written = is_marked_as_sent(domain.configured.text)
    if not (is_written or is_sent(domain)) or domain.is_coming or _is_busy(domain):
        return domain
    if is_sent(domain):
        end_or_unmark(domain)
        domain = read(domain.handle) or domain
    return settled_in(pool, domain) if is_written else domain


def settled_in(pool: Pool, domain: Domain) -> Domain:
    """Make what came with a machine its own; done again it changes nothing."""
    handle = domain.handle
    # The guest may still hold what its machine has lost, and that came along as well.
    disks = {disk for flags in (0, WRITTEN) for disk in disks_of(handle.XMLDesc(flags))}
    pools = {name: there for name, _ in disks if (there := pool_of(pool, name)) is not None}
    _require_root(pool, domain)
    if domain.power is Power.OFF:
        put_on_base(pool, domain.uid)
        for each in {pool.name: pool, **pools}.values():
            refresh(each)  # what came as a file is a disk from now on
    take_out(pool, domain)
    for name, volume in disks:
        if name in pools:
            pools[name].remove(f"{volume}{COMING}")
    if is_marked_as_sent(domain.configured.text):
        handle.connect().defineXML(unmarked(handle.XMLDesc(WRITTEN)))
        return read(handle) or domain
    return domain


def _require_root(pool: Pool, domain: Domain) -> None:
    """Wait for a first disk that is away, as while its storage is not mounted: it keeps the mark.

    Nobody would ever put it on top of what came with it else.
    """
    root = root_volume(domain.uid)
    if pool.find(root) is None:
        refresh(pool)
        if pool.find(root) is None:
            raise Busy(
                "a move left it half-way, and its first disk is not there: have the host see the "
                "storage that it is in",
                DISK_AGAIN,
                reason=DISK_LOST,
            )


def end_or_unmark(domain: Domain) -> None:
    """End a guest that somebody wanted to send, and died; one that runs has only kept the mark.

    It was started from what was written down for a move that came to nothing. Who is only up to be
    sent reads and writes nothing, so one that QEMU stopped for that runs.
    """
    if (domain.state, domain.reason) != STOPPED and domain.state == libvirt.VIR_DOMAIN_PAUSED:
        domain.handle.destroy()
        return
    kind, live = libvirt.VIR_DOMAIN_METADATA_ELEMENT, libvirt.VIR_DOMAIN_AFFECT_LIVE
    domain.handle.setMetadata(kind, None, None, SENT, live)


def _is_busy(domain: Domain) -> bool:
    """Say whether a guest is being sent at this moment."""
    return domain.power is Power.ON and domain.handle.jobInfo()[0] != libvirt.VIR_DOMAIN_JOB_NONE
