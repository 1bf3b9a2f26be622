"""How a machine is sent to another host: by the two hosts' own daemons, which go on without us.

The daemon of the host that it leaves talks to the other one itself, so nothing that becomes of
this process can leave two guests or none. Blocks.
"""

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import libvirt

from novacron.core.errors import Busy, DriverError, OutOfCapacity, Rejected, Unreachable
from novacron.core.machine import Power
from novacron.core.migration import CPU_INCOMPATIBLE, HAS_SNAPSHOTS, VOLUMES_AWAIT_RESTART
from novacron.core.move import MovePolicy, MoveProgress
from novacron.drivers.libvirt.arrivals import Reception
from novacron.drivers.libvirt.disk_files import BASE, as_files, lend, with_base
from novacron.drivers.libvirt.errors import NO_ROOM, code_of, sentence
from novacron.drivers.libvirt.homecoming import end_or_unmark, is_sent
from novacron.drivers.libvirt.look import Domain
from novacron.drivers.libvirt.pool import Pool
from novacron.drivers.libvirt.travel import (
    adapted,
    marked_as_sent,
    with_plain_cpu,
    without_hardware,
)

__all__ = [
    "Route",
    "abort",
    "depart",
    "explained",
    "hasten",
    "progress_of",
    "require_all_plugged_in",
    "require_bandwidth",
    "require_off",
]

MIB = 1024 * 1024
WHOLE = 100
ALWAYS = (
    libvirt.VIR_MIGRATE_PEER2PEER
    | libvirt.VIR_MIGRATE_PERSIST_DEST
    | libvirt.VIR_MIGRATE_UNDEFINE_SOURCE
    | libvirt.VIR_MIGRATE_ABORT_ON_ERROR
    # We know which disks both hosts reach; libvirt only guesses by the kind of file system.
    | libvirt.VIR_MIGRATE_UNSAFE
)
MIGRATABLE = libvirt.VIR_DOMAIN_XML_MIGRATABLE | libvirt.VIR_DOMAIN_XML_SECURE
WRITTEN = MIGRATABLE | libvirt.VIR_DOMAIN_XML_INACTIVE
# Said of a domain that does not run any more.
GONE = frozenset({libvirt.VIR_ERR_NO_DOMAIN, libvirt.VIR_ERR_OPERATION_INVALID})
# Each move takes one or two of the ports that libvirt has for them, and gives them back.
NO_PORT = re.compile(r"unused port in range", re.I)
PORT_AGAIN = timedelta(seconds=5)
REASONS = (
    (re.compile(r"cancel?led by client|aborted", re.I), DriverError, "Cancelled"),
    (
        re.compile(r"\bCPU\b.*(incompat|match|missing|support|provide)", re.I | re.S),
        Rejected,
        CPU_INCOMPATIBLE,
    ),
    (re.compile(r"\bTLS\b|certificate|credentials", re.I), Rejected, "NoCertificates"),
    (
        re.compile(r"connect|lost|closed|reset by peer|Broken pipe|timed out", re.I),
        Unreachable,
        "TargetUnreachable",
    ),
)


@dataclass(frozen=True, slots=True)
class Route:
    """How the other host is reached, and how it takes the machine in."""

    host: str
    uri: str
    address: str | None
    tls: bool
    reception: Reception


def depart(domain: Domain, pool: Pool, route: Route, policy: MovePolicy) -> None:
    """Send a machine; returns when it is there. One that is off is sent without ever running."""
    handle = domain.handle
    if domain.power is Power.ON:
        handle.migrateToURI3(route.uri, _wishes(handle, route, policy), _flags(route, policy))
        return
    written = handle.XMLDesc(WRITTEN)
    # It never runs, so it need not have a CPU that only one of the hosts has, nor their hardware.
    bare = without_hardware(written)
    up = marked_as_sent(with_plain_cpu(as_files(bare, route.reception.whole)))
    if BASE in route.reception.copied and (base := lend(pool, domain.uid)):
        up = with_base(up, pool, base)
    try:
        # What is written down stays as it is: a guest must never run with files for disks.
        handle = handle.connect().createXML(up, libvirt.VIR_DOMAIN_START_PAUSED)
        flags = _flags(route, policy, cold=True)
        handle.migrateToURI3(route.uri, _wishes(handle, route, policy, bare), flags)
    except libvirt.libvirtError:
        if handle.isActive():
            handle.destroy()
        raise


def _flags(route: Route, policy: MovePolicy, *, cold: bool = False) -> int:
    flags: int = ALWAYS
    flags |= (
        libvirt.VIR_MIGRATE_PAUSED
        if cold
        else (libvirt.VIR_MIGRATE_LIVE | libvirt.VIR_MIGRATE_AUTO_CONVERGE)
    )
    if policy.compression:
        flags |= libvirt.VIR_MIGRATE_COMPRESSED
    if policy.encrypted:
        flags |= libvirt.VIR_MIGRATE_TLS
    if route.reception.copied:
        flags |= libvirt.VIR_MIGRATE_NON_SHARED_DISK
    return flags


def _wishes(
    handle: libvirt.virDomain, route: Route, policy: MovePolicy, written: str | None = None
) -> dict[str, Any]:
    running = handle.XMLDesc(MIGRATABLE)
    written = written or handle.XMLDesc(WRITTEN)
    draft, pools, copied = route.reception.draft, route.reception.pools, route.reception.copied
    there = adapted(written, draft, pools)
    if copied:  # so that it is known of it as long as nobody has made all that came its own
        there = marked_as_sent(there)
    wishes: dict[str, Any] = {
        libvirt.VIR_MIGRATE_PARAM_DEST_XML: adapted(running, draft, pools),
        libvirt.VIR_MIGRATE_PARAM_PERSIST_XML: there,
    }
    if route.address:
        wishes[libvirt.VIR_MIGRATE_PARAM_URI] = f"tcp://{route.address}"
    if policy.bandwidth_bytes is not None:
        share = _share(policy.bandwidth_bytes, route.reception)
        wishes[libvirt.VIR_MIGRATE_PARAM_BANDWIDTH] = share
    if policy.compression:
        wishes[libvirt.VIR_MIGRATE_PARAM_COMPRESSION] = ["xbzrle"]
    if copied:
        wishes[libvirt.VIR_MIGRATE_PARAM_MIGRATE_DISKS] = list(copied)
    return wishes


def _share(bandwidth_bytes: int, reception: Reception) -> int:
    """Return how many MiB a second are for each disk, as libvirt copies all of them at once."""
    return bandwidth_bytes // MIB // max(1, len(reception.copied))


def require_all_plugged_in(route: Route) -> None:
    """Refuse to send a guest without volumes of its machine that are nowhere but here."""
    if left := ", ".join(route.reception.left):
        raise Rejected(
            f"host {route.host} does not see volume {left}, which the guest gets with a restart "
            "and which is not copied before: restart it first, or take the volume off the machine",
            reason=VOLUMES_AWAIT_RESTART,
        )


def require_off(domain: Domain, route: Route) -> None:
    """Refuse to send a guest without the snapshots that are within disks to be copied."""
    if route.reception.whole and domain.power is Power.ON:
        raise Rejected(
            f"host {route.host} does not see its disks, and its snapshots come along only while it "
            "is off: let it be stopped (--stop-allowed), delete the snapshots first, or have both "
            "hosts see one storage",
            reason=HAS_SNAPSHOTS,
        )


def require_bandwidth(route: Route, policy: MovePolicy) -> None:
    """Refuse to send a machine faster than it may travel: libvirt knows whole MiB only."""
    bandwidth, copied = policy.bandwidth_bytes, len(route.reception.copied)
    if bandwidth is None or _share(bandwidth, route.reception):
        return
    each = f"each of the {copied} disks that are copied at once" if copied > 1 else "it"
    raise Rejected(
        f"{each} takes 1 MiB a second at least, and all of it may take {bandwidth} bytes a second: "
        f"give it a bandwidth of {max(1, copied)}Mi or more",
        reason="BandwidthTooLow",
    )


def hasten(domain: Domain, policy: MovePolicy) -> None:
    """Let memory travel with all the bandwidth: it is sent when the disks are there."""
    if policy.bandwidth_bytes is not None:
        with suppress(libvirt.libvirtError):  # it has come this moment
            domain.handle.migrateSetMaxSpeed(policy.bandwidth_bytes // MIB)


def progress_of(domain: Domain | None) -> MoveProgress | None:
    """Tell how far a machine is that is being sent; None where none is."""
    if domain is None or domain.power is Power.OFF:
        return None
    try:
        stats = domain.handle.jobStats()
    except libvirt.libvirtError as error:
        if code_of(error) not in GONE:
            raise  # nobody knows whether it is being sent
        return None
    if stats.get("operation") != libvirt.VIR_DOMAIN_JOB_OPERATION_MIGRATION_OUT:
        return None
    total, left = int(stats.get("data_total", 0)), int(stats.get("data_remaining", 0))
    percent = WHOLE * (total - left) // total if total else 0
    # What changes meanwhile is sent again: only a machine that is there has wholly come.
    return MoveProgress(min(max(percent, 0), WHOLE - 1), stats.get("data_processed"))


def abort(domain: Domain | None) -> None:
    """Have a machine not sent any further, and not be up for that alone."""
    if domain is None or domain.power is Power.OFF:
        return
    if progress_of(domain) is not None:
        domain.handle.abortJob()
    elif is_sent(domain):
        end_or_unmark(domain)


def explained(error: libvirt.libvirtError, route: Route) -> DriverError:
    """Return what went wrong with a move in words that tell what to do."""
    said = sentence(error)
    message = f"host {route.host} did not take it: {said}"
    if NO_ROOM.search(said) or "cannot set up guest memory" in said:
        return OutOfCapacity(message)
    if NO_PORT.search(said):
        return Busy(f"host {route.host} takes in no more machines at a time: {said}", PORT_AGAIN)
    for pattern, kind, reason in REASONS:
        if pattern.search(said):
            return kind(message, reason=reason)
    return DriverError(message, reason="MigrationFailed")
