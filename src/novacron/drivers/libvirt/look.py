"""What a look at libvirt finds of our machines, in the core's words. Blocks."""

import logging
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from types import MappingProxyType
from typing import TypeVar

import libvirt

from novacron.core.errors import DriverError
from novacron.core.machine import Hindrance, Observed, Power, Usage
from novacron.core.volume import Attachment, SeenVolume
from novacron.drivers.libvirt import fitted
from novacron.drivers.libvirt.addresses import addresses_of, told
from novacron.drivers.libvirt.defined import Defined
from novacron.drivers.libvirt.domain import domain_uuid, root_volume
from novacron.drivers.libvirt.errors import NOT_THERE, code_of
from novacron.drivers.libvirt.hearing import Hearing
from novacron.drivers.libvirt.mark import Mark
from novacron.drivers.libvirt.travel import is_marked_as_sent

__all__ = [
    "Domain",
    "Known",
    "by_volume",
    "find",
    "needed_volumes",
    "observed",
    "read",
    "read_all",
    "read_definitions",
    "unless_gone",
    "unless_odd",
]

log = logging.getLogger(__name__)

T = TypeVar("T")
# A domain's state, and the reason for it.
Turned = tuple[int, int]
NOTHING_KNOWN: Mapping[str, Turned] = MappingProxyType({})

ADDRESS_AGAIN = timedelta(seconds=1)
INCOMING = (libvirt.VIR_DOMAIN_PAUSED, libvirt.VIR_DOMAIN_PAUSED_MIGRATION)
PROGRESS_AGAIN = timedelta(seconds=2)
MORE_ADDRESSES_AGAIN = timedelta(seconds=5)
ENDED = {
    libvirt.VIR_DOMAIN_SHUTOFF_SHUTDOWN: "the guest shut itself down",
    libvirt.VIR_DOMAIN_SHUTOFF_DESTROYED: "somebody pulled its plug",
    libvirt.VIR_DOMAIN_SHUTOFF_CRASHED: "it crashed",
    libvirt.VIR_DOMAIN_SHUTOFF_FAILED: "it could not be started",
}


@dataclass(frozen=True, slots=True)
class Domain:
    """One of our domains: its definition, and the guest that runs, if one does.

    Of some it is known that they are ``without_snapshots``, which saves the daemon a question.
    """

    handle: libvirt.virDomain
    configured: Defined
    running: Defined | None
    state: int
    reason: int
    without_snapshots: bool = False

    @property
    def power(self) -> Power:
        """Return whether a guest is there, paused or not."""
        return Power.OFF if self.running is None else Power.ON

    @property
    def is_coming(self) -> bool:
        """Say whether its guest is still on another host."""
        return (self.state, self.reason) == INCOMING

    @property
    def uid(self) -> str:
        """Return its owner."""
        return self.configured.mark.uid

    def marked(self, mark: Mark) -> "Domain":
        """Return it with another mark written down."""
        return replace(self, configured=replace(self.configured, mark=mark))

    def started(self) -> "Domain":
        """Return it with a guest that was just started, which has all that is written down."""
        return replace(
            self,
            running=self.configured,
            state=libvirt.VIR_DOMAIN_RUNNING,
            reason=libvirt.VIR_DOMAIN_RUNNING_BOOTED,
        )


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


def unless_gone(look: Callable[[], T]) -> T | None:
    """Return what a look at a domain finds, or None when it goes away meanwhile."""
    try:
        return look()
    except libvirt.libvirtError as error:
        if code_of(error) != libvirt.VIR_ERR_NO_DOMAIN:
            raise
        return None


def unless_odd(name: str, look: Callable[[], T | None]) -> T | None:
    """Return what a look at one of many domains finds, or None when nobody foresaw what it says.

    Much of it comes from guests, and none of them may hide all others of its host.
    """
    try:
        return unless_gone(look)
    except (libvirt.libvirtError, DriverError):
        raise  # it is the host that cannot be looked at
    except Exception:
        log.exception("%s is left out of what is told of its host", name)
        return None


def read(handle: libvirt.virDomain, turned: Turned | None = None) -> Domain | None:
    """Return a domain as it is now, or None when it is not ours; its state may be known already."""
    state, reason = turned or handle.state()
    configured = Defined.read(handle.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE))
    if configured is None:
        return None
    running = None if state == libvirt.VIR_DOMAIN_SHUTOFF else Defined.read(handle.XMLDesc())
    return Domain(handle, configured, running, state, reason)


def read_definitions(connection: libvirt.virConnect) -> Iterator[Defined]:
    """Return how every domain of ours is written down, whether its guest runs or not."""
    for handle in connection.listAllDomains():
        text = unless_gone(partial(handle.XMLDesc, libvirt.VIR_DOMAIN_XML_INACTIVE))
        if text is not None and (defined := Defined.read(text)) is not None:
            yield defined


def read_all(
    connection: libvirt.virConnect,
    states: Mapping[str, Turned] = NOTHING_KNOWN,
    except_for: Container[str] = (),
    *,
    odd_too: bool = True,
) -> list[Domain]:
    """Return every domain of ours that is there by the time it is looked at, but for some.

    Every question about a single domain is asked as often as there are machines, so what is known
    of many at once comes first: ``states`` by their UUID, and who has snapshots. One that cannot be
    understood makes it fail, unless such ones are to be left out.
    """
    flag = libvirt.VIR_CONNECT_LIST_DOMAINS_HAS_SNAPSHOT
    kept = {handle.UUIDString() for handle in connection.listAllDomains(flag)}

    def seen(handle: libvirt.virDomain) -> Domain | None:
        if (uuid := handle.UUIDString()) in except_for:
            return None
        found = read(handle, states.get(uuid))
        return replace(found, without_snapshots=uuid not in kept) if found else None

    def looked_at(handle: libvirt.virDomain) -> Domain | None:
        look = partial(seen, handle)
        return unless_gone(look) if odd_too else unless_odd(handle.name(), look)

    return [found for each in connection.listAllDomains() if (found := looked_at(each))]


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of machines beside what libvirt says: this process's own work on them.

    What agents say is heard by ``hearing``, which leaves out those that are mute.
    """

    building: frozenset[str] = frozenset()
    stopping: frozenset[str] = frozenset()
    usage: Mapping[str, Usage] = field(default_factory=dict)
    progress: Mapping[str, str] = field(default_factory=dict)
    restoring: frozenset[str] = frozenset()
    hearing: Hearing | None = None


def needed_volumes(defined: Defined) -> frozenset[str]:
    """Return the names of the volumes without which a machine is not complete."""
    return frozenset({root_volume(defined.mark.uid), defined.seed})


def observed(
    domain: Domain,
    known: Known,
    *,
    complete: bool,
    files: frozenset[str] = frozenset(),
    hindered: Hindrance | None = None,
) -> Observed:
    """Return what there is to say of a domain, which may have its first disk and seed or not.

    ``files`` are those of its volumes that are there, by pool and name; ``hindered`` is why its
    guest stands still, if it does.
    """
    configured, running = domain.configured, domain.running
    uid, mark = domain.uid, configured.mark
    has = (running or configured).resources
    volumes = volumes_of(domain, files)
    # Never made anew under a guest that runs, whatever became of its files.
    complete = complete or running is not None
    addresses = addresses_of(domain.handle, running, known.hearing) if running else {}
    snapshots = 0 if domain.without_snapshots else int(domain.handle.snapshotNum())
    return Observed(
        uid=uid,
        vm_id=domain_uuid(uid),
        power=domain.power,
        resources=has,
        changing=_changing(domain, known, complete=complete),
        addresses=told(addresses),
        usage=known.usage.get(uid) if running else None,
        live_migratable=True,
        immovable="it has devices of its host" if running and running.handed else None,
        due=_due(uid, known, addresses),
        progress=known.progress.get(uid),
        abandoned=not complete and uid not in known.building,
        after_restart=None if configured.resources == has else configured.resources,
        recipe=mark.recipe,
        awaits_restart=_awaits_restart(domain, volumes),
        volumes=volumes,
        drifted=_drifted(configured, running),
        ended=ENDED.get(domain.reason) if domain.state == libvirt.VIR_DOMAIN_SHUTOFF else None,
        snapshots=snapshots,
        ran=running.record.ended if running else (),
        under_way=running.record.under_way if running else (),
        cpu=running.mark.cpu if running else "",
        hindered=hindered,
    )


def _drifted(configured: Defined, running: Defined | None) -> str | None:
    """Return why a definition is to be written anew, if it is."""
    if any(it is not None and is_marked_as_sent(it.text) for it in (configured, running)):
        return "a move was given up in the midst of it"
    return None if configured.mark.shape == configured.shape else "its definition was edited"


def _due(uid: str, known: Known, addresses: Mapping[str, tuple[str, ...]]) -> timedelta | None:
    """Return when to look again, for addresses come to guests without anybody telling."""
    if uid in known.progress:
        return PROGRESS_AGAIN  # the end of it is told at once
    if all(addresses.values()):
        return None
    return MORE_ADDRESSES_AGAIN if any(addresses.values()) else ADDRESS_AGAIN


def _changing(domain: Domain, known: Known, *, complete: bool) -> str | None:
    if not complete or domain.uid in known.building:
        return "create"
    if domain.is_coming:
        return "arrive"
    if domain.uid in known.restoring:
        return "restore"
    leaving = domain.state == libvirt.VIR_DOMAIN_SHUTDOWN or domain.uid in known.stopping
    return "stop" if domain.running is not None and leaving else None


def volumes_of(domain: Domain, files: frozenset[str]) -> tuple[SeenVolume, ...]:
    """Return how the machine's volumes are, those included that were taken off it and kept."""
    live = domain.running.disks if domain.running else None
    return tuple(
        fitted.seen(each, files, live)
        for each in domain.configured.mark.volumes
        if not each.detached or each.key in files
    )


def by_volume(usage: Usage, domain: Domain) -> Usage:
    """Return what a guest uses with its volumes called by their names, not by their targets."""
    names = {each.target: each.name for each in domain.configured.mark.volumes}
    taken = tuple((names[at], mib) for at, mib in usage.volumes_mib if at in names)
    return replace(usage, volumes_mib=taken)


def _awaits_restart(domain: Domain, volumes: tuple[SeenVolume, ...]) -> tuple[str, ...]:
    running, configured = domain.running, domain.configured
    if running is None:
        return ()
    differences = {
        "cpu": running.vcpus != configured.vcpus,
        "memory": running.memory_mib != configured.memory_mib,
        "networks": _wired_otherwise(running, configured),
        "devices": running.handed != configured.handed,
        "volumes": any(each.attachment is Attachment.AWAITS_RESTART for each in volumes),
    }
    return tuple(name for name, differs in differences.items() if differs)


def _wired_otherwise(running: Defined, configured: Defined) -> bool:
    """Say whether a guest has other interfaces than it should, or was told other things of them."""
    if set(running.plugged) != set(configured.plugged):
        return True
    return any(
        not running.mark.told_of(each.mac).is_same(configured.mark.told_of(each.mac))
        for each in configured.plugged
    )
