"""What a look at libvirt finds of our machines, in the core's words. Blocks."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

import libvirt

from novacron.core.machine import Observed, Power, Usage
from novacron.drivers.libvirt.addresses import addresses_of
from novacron.drivers.libvirt.domain import Defined, domain_uuid, root_volume
from novacron.drivers.libvirt.errors import NOT_THERE, code_of
from novacron.drivers.libvirt.pool import Pool

__all__ = ["Domain", "find", "observed", "read"]

ADDRESS_AGAIN = timedelta(seconds=1)
INCOMING = (libvirt.VIR_DOMAIN_PAUSED, libvirt.VIR_DOMAIN_PAUSED_MIGRATION)
ENDED = {
    libvirt.VIR_DOMAIN_SHUTOFF_SHUTDOWN: "the guest shut itself down",
    libvirt.VIR_DOMAIN_SHUTOFF_DESTROYED: "somebody pulled its plug",
    libvirt.VIR_DOMAIN_SHUTOFF_CRASHED: "it crashed",
    libvirt.VIR_DOMAIN_SHUTOFF_FAILED: "it could not be started",
}


@dataclass(frozen=True, slots=True)
class Domain:
    """One of our domains: its definition, and the guest that runs, if one does."""

    handle: libvirt.virDomain
    configured: Defined
    running: Defined | None
    state: int
    reason: int

    @property
    def power(self) -> Power:
        """Return whether a guest is there, paused or not."""
        return Power.OFF if self.running is None else Power.ON

    @property
    def uid(self) -> str:
        """Return its owner."""
        return self.configured.mark.uid


def find(connection: libvirt.virConnect, uid: str) -> Domain | None:
    """Return the domain of a machine; somebody else's under the same UUID is none of ours."""
    try:
        handle = connection.lookupByUUIDString(domain_uuid(uid))
        domain = read(handle)
    except libvirt.libvirtError as error:
        if code_of(error) in NOT_THERE:
            return None
        raise
    return domain if domain is not None and domain.uid == uid else None


def read(handle: libvirt.virDomain) -> Domain | None:
    """Return a domain as it is now, or None when it is not ours."""
    state, reason = handle.state()
    configured = Defined.read(handle.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE))
    if configured is None:
        return None
    running = None if state == libvirt.VIR_DOMAIN_SHUTOFF else Defined.read(handle.XMLDesc())
    return Domain(handle, configured, running, state, reason)


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of machines beside what libvirt says: this process's own work on them."""

    building: frozenset[str] = frozenset()
    stopping: frozenset[str] = frozenset()
    usage: Mapping[str, Usage] = field(default_factory=dict)


def observed(domain: Domain, pool: Pool, volumes: frozenset[str], known: Known) -> Observed:
    """Return what there is to say of a domain."""
    configured, running = domain.configured, domain.running
    uid, mark = domain.uid, configured.mark
    has = (running or configured).resources
    complete = {root_volume(uid), configured.seed} <= volumes
    addresses = addresses_of(pool.connection, domain.handle, running) if running else ()
    awaited = running is not None and bool(running.macs) and not addresses
    return Observed(
        uid=uid,
        vm_id=domain_uuid(uid),
        power=domain.power,
        resources=has,
        changing=_changing(domain, known, complete=complete),
        addresses=addresses,
        usage=known.usage.get(uid) if running else None,
        live_migratable=True,
        immovable="it has devices of its host" if running and running.hostdev else None,
        due=ADDRESS_AGAIN if awaited else None,
        abandoned=not complete and uid not in known.building,
        after_restart=None if configured.resources == has else configured.resources,
        recipe=mark.recipe,
        awaits_restart=_awaits_restart(domain),
        drifted=None if mark.shape == configured.shape else "its definition was edited",
        ended=ENDED.get(domain.reason) if domain.state == libvirt.VIR_DOMAIN_SHUTOFF else None,
    )


def _changing(domain: Domain, known: Known, *, complete: bool) -> str | None:
    if not complete or domain.uid in known.building:
        return "create"
    if (domain.state, domain.reason) == INCOMING:
        return "arrive"
    leaving = domain.state == libvirt.VIR_DOMAIN_SHUTDOWN or domain.uid in known.stopping
    return "stop" if domain.running is not None and leaving else None


def _awaits_restart(domain: Domain) -> tuple[str, ...]:
    running, configured = domain.running, domain.configured
    if running is None:
        return ()
    differences = {
        "cpu": running.vcpus != configured.vcpus,
        "memory": running.memory_mib != configured.memory_mib,
        "networks": running.mark.recipe != configured.mark.recipe,
    }
    return tuple(name for name, differs in differences.items() if differs)
