"""Guests that are there and do not run: why, and how one goes on that only lacked room. Blocks.

QEMU stops a guest whose disk cannot grow any more, so that it never sees a failed write. One that
somebody paused on purpose is none of these.
"""

from contextlib import suppress
from dataclasses import replace

import libvirt

from novacron.core.machine import (
    GUEST_CRASHED,
    GUEST_PAUSED,
    GUEST_SUSPENDED,
    Hindrance,
)
from novacron.drivers.libvirt.look import Domain
from novacron.drivers.libvirt.travel import pools_by_target

__all__ = ["hindrance", "resumed"]

MIB = 1024 * 1024
# With less it would stand still again within a moment.
ENOUGH_MIB = 16
FAILED_DISK = (libvirt.VIR_DOMAIN_PAUSED, libvirt.VIR_DOMAIN_PAUSED_IOERROR)
ANY = -1
KEPT_AFTER_CRASH = (
    GUEST_CRASHED,
    "it crashed and is kept as it was: end it there with virsh destroy {name}",
)
# By state and its reason; a name comes into each sentence.
OTHERWISE = {
    (libvirt.VIR_DOMAIN_PAUSED, libvirt.VIR_DOMAIN_PAUSED_UNKNOWN): (
        GUEST_PAUSED,
        "QEMU stopped it and does not tell why: look into /var/log/libvirt/qemu/{name}.log there",
    ),
    (libvirt.VIR_DOMAIN_PAUSED, libvirt.VIR_DOMAIN_PAUSED_WATCHDOG): (
        GUEST_PAUSED,
        "its watchdog stopped it: have it go on there with virsh resume {name}",
    ),
    (libvirt.VIR_DOMAIN_PAUSED, libvirt.VIR_DOMAIN_PAUSED_CRASHED): KEPT_AFTER_CRASH,
    (libvirt.VIR_DOMAIN_CRASHED, ANY): KEPT_AFTER_CRASH,
    (libvirt.VIR_DOMAIN_PMSUSPENDED, ANY): (
        GUEST_SUSPENDED,
        "it put itself to sleep: wake it there with virsh dompmwakeup {name}",
    ),
}


def hindrance(domain: Domain, host: str) -> Hindrance | None:
    """Return why a guest that is there does not run, in words that tell what to do."""
    turned = (domain.state, domain.reason)
    if domain.running is None:
        return None
    if turned == FAILED_DISK:
        return Hindrance(GUEST_PAUSED, f"the guest stands still: {_failed_disks(domain, host)}")
    found = OTHERWISE.get(turned) or OTHERWISE.get((domain.state, ANY))
    if found is None:
        return None
    reason, why = found
    message = f"the guest stands still on host {host}: {why.format(name=domain.handle.name())}"
    return Hindrance(reason, message)


def resumed(domain: Domain) -> Domain:
    """Have a guest go on that stands still for want of room, once there is some.

    Not one whose disk failed in any other way: only whoever mends that knows when it is.
    """
    if (domain.state, domain.reason) != FAILED_DISK or _broken(domain):
        return domain
    if min(_free_mib(domain).values(), default=0) < ENOUGH_MIB:
        return domain
    domain.handle.resume()
    going_on = (libvirt.VIR_DOMAIN_RUNNING, libvirt.VIR_DOMAIN_RUNNING_UNPAUSED)
    return replace(domain, state=going_on[0], reason=going_on[1])


def _failed_disks(domain: Domain, host: str) -> str:
    """Say what is the matter with the disks of a guest that QEMU stopped."""
    if broken := _broken(domain):
        return (
            f"host {host} fails to read or write its disk {', '.join(broken)}: mend its storage, "
            f"then have the guest go on with virsh resume {domain.handle.name()}"
        )
    pools = ", ".join(
        f"{pool} ({free} MiB free at the last look)" for pool, free in _free_mib(domain).items()
    )
    return (
        f"there is no room for what it writes in pool {pools} of host {host}; it goes on by itself "
        f"soon after {ENOUGH_MIB} MiB are free there"
    )


def _broken(domain: Domain) -> list[str]:
    """Return the disks that failed in another way than by being full."""
    unlike = libvirt.VIR_DOMAIN_DISK_ERROR_UNSPEC
    return sorted(target for target, error in _errors(domain).items() if error == unlike)


def _free_mib(domain: Domain) -> dict[str, int]:
    """Return how much is free in each pool that a guest could not write to, as last seen there."""
    assert domain.running is not None
    pools, failed = pools_by_target(domain.running.text), _errors(domain)
    found: dict[str, int] = {}
    for target, name in sorted(pools.items()):
        if target in failed or not failed:
            with suppress(libvirt.libvirtError):  # stopped meanwhile, or taken away
                found[name] = _room(domain.handle.connect().storagePoolLookupByName(name))
    return found


def _room(pool: libvirt.virStoragePool) -> int:
    """Return how many MiB are free in a pool.

    libvirt counts only when it is told to, and goes through all volumes then. It is told so with
    every look at the host, so here only where what it says cannot be true any more.
    """
    free = int(pool.info()[3]) // MIB
    if free < ENOUGH_MIB:
        return free
    with suppress(libvirt.libvirtError):  # it refuses while a volume is being filled
        pool.refresh()
    return int(pool.info()[3]) // MIB


def _errors(domain: Domain) -> dict[str, int]:
    """Return what failed, by the target of each disk; nothing where QEMU cannot be asked now."""
    with suppress(libvirt.libvirtError):
        return dict(domain.handle.diskErrors())
    return {}
