"""Writes machines down: the definition, with our mark in it. Blocks."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import libvirt

from novacron.core.errors import Busy
from novacron.core.machine import MachinePlan, Power
from novacron.drivers.libvirt.defined import Defined
from novacron.drivers.libvirt.domain import Draft, Place, domain_uuid, drafted
from novacron.drivers.libvirt.facts import Machinery
from novacron.drivers.libvirt.fitted import Fitted
from novacron.drivers.libvirt.host import LibvirtHost
from novacron.drivers.libvirt.interfaces import Plugged, mac_of
from novacron.drivers.libvirt.look import Domain
from novacron.drivers.libvirt.mark import NAMESPACE, Mark, set_mark
from novacron.drivers.libvirt.pool import Pool
from novacron.drivers.libvirt.ports import port_of

__all__ = ["MOST_LIVE_VCPUS", "Writing", "lacks_note", "note_guest", "wired"]

MOST_LIVE_VCPUS = 16

Written = tuple[libvirt.virDomain, Defined]


@dataclass(frozen=True, slots=True)
class Writing:
    """Writes on one host."""

    host: LibvirtHost
    machinery: Machinery
    pool: Pool

    def changed(
        self,
        plan: MachinePlan,
        name: str,
        seed: str,
        volumes: tuple[Fitted, ...],
        *,
        begun: bool | None,
        untold: bool = False,
    ) -> Written:
        """Write a machine down, then ask what libvirt made of it, and add that to the mark."""
        draft = self._drafted(plan, name, seed, volumes)
        mark = replace(self._mark(plan, volumes, begun=begun), untold=untold)
        handle = self.pool.connection.defineXML(draft.marked(mark))
        # What libvirt made of it is what a later look is compared with.
        text = handle.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE)
        if NAMESPACE not in text:
            raise Busy(f"somebody else changes {plan.ref.name} on host {self.host.name}")
        plugged = wired(self.host, plan)
        self.machinery.spelling.learn(draft, _own_words(plan, seed, plugged, volumes), text)
        written = Defined.written(plan, name, seed, plugged, mark, text)
        set_mark(handle, written.mark, libvirt.VIR_DOMAIN_AFFECT_CONFIG)
        return handle, written

    def new(
        self,
        plan: MachinePlan,
        name: str,
        seed: str,
        volumes: tuple[Fitted, ...],
        *,
        begun: bool | None,
    ) -> Written:
        """Write a machine down in one go, where it is known what libvirt makes of it.

        Only a new one: one that is not as libvirt should have made it is mended by ``changed``.
        """
        draft, plugged = self._drafted(plan, name, seed, volumes), wired(self.host, plan)
        own = _own_words(plan, seed, plugged, volumes)
        if (text := self.machinery.spelling.foreseen(draft, own)) is None:
            return self.changed(plan, name, seed, volumes, begun=begun)
        mark = self._mark(plan, volumes, begun=begun)
        written = Defined.written(plan, name, seed, plugged, mark, text)
        return self.pool.connection.defineXML(draft.marked(written.mark)), written

    def draft(self, plan: MachinePlan, name: str, seed: str, volumes: tuple[Fitted, ...]) -> str:
        """Return how a machine would be written down."""
        return self._drafted(plan, name, seed, volumes).marked(Mark.of(plan, volumes))

    def _drafted(
        self, plan: MachinePlan, name: str, seed: str, volumes: tuple[Fitted, ...]
    ) -> Draft:
        place = Place(
            pool=self.host.pool,
            pool_path=self.pool.path,
            ports=tuple(each.port for each in wired(self.host, plan)),
            accelerator=self.machinery.accelerator,
            max_vcpus=min(self.machinery.cpus, MOST_LIVE_VCPUS),
            memory_mib=self.machinery.memory_mib,
        )
        return drafted(plan, name, seed, place, volumes)

    def _mark(self, plan: MachinePlan, volumes: tuple[Fitted, ...], *, begun: bool | None) -> Mark:
        return replace(Mark.of(plan, volumes), cpu=self.machinery.cpu_key, begun=begun)


def lacks_note(domain: Domain, *, complete: bool) -> bool:
    """Say whether it is still to be written down that there may be data on a first disk.

    One that is off and has its disk may have run under an operator who noted nothing.
    """
    begun = domain.configured.mark.begun
    if domain.power is Power.ON:
        return not begun and not domain.is_coming
    return begun is None and complete


def note_guest(domain: Domain) -> Domain:
    """Write down, if it is not yet, that there is a guest whose data are not to be lost."""
    if domain.configured.mark.begun:
        return domain
    mark = replace(domain.configured.mark, begun=True)
    set_mark(domain.handle, mark, libvirt.VIR_DOMAIN_AFFECT_CONFIG)
    return domain.marked(mark)


def wired(host: LibvirtHost, plan: MachinePlan) -> tuple[Plugged, ...]:
    """Return the interfaces of a machine, and where they are plugged in on a host."""
    return tuple(Plugged(mac_of(plan.ref.uid, nic), port_of(host, nic)) for nic in plan.nics)


def _own_words(
    plan: MachinePlan, seed: str, plugged: Iterable[Plugged], volumes: Iterable[Fitted]
) -> tuple[str, ...]:
    """Return what only this machine's definition has; one that contains another comes first."""
    files, macs = (each.file for each in volumes), (each.mac for each in plugged)
    return seed, *files, domain_uuid(plan.ref.uid), *macs
