"""Gives machines their volumes: made before they are plugged in, and never thrown away. Blocks.

Everything is found again by the mark, so each piece of work may be cut short and done again.
"""

from dataclasses import dataclass, replace
from xml.etree import ElementTree as ET

import libvirt

from novacron.core.errors import Rejected
from novacron.core.machine import MachinePlan, Power
from novacron.core.volume import Access
from novacron.drivers.libvirt.errors import code_of
from novacron.drivers.libvirt.fitted import Fitted, disk_of, fitted, serial_of
from novacron.drivers.libvirt.holders import require_unused
from novacron.drivers.libvirt.look import Domain, read
from novacron.drivers.libvirt.mark import Mark, set_mark
from novacron.drivers.libvirt.storage import Storage, size_of

__all__ = ["Plugging"]

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Plugging:
    """Works on the volumes of one host's machines."""

    storage: Storage

    def fit(self, plan: MachinePlan, domain: Domain) -> tuple[Fitted, ...]:
        """Return which volumes the machine is to have; refuse what cannot be."""
        if plan.volumes is None:
            return domain.configured.mark.volumes
        before = _one_of_each(domain.configured.mark.volumes)
        places = self.storage.places(plan, Rejected, before=before)
        live = domain.running.disks if domain.running else frozenset()
        volumes = fitted(places, before, live)
        known = {each.key for each in before if not each.detached}
        having = [self._as_found(each) for each in volumes if not each.detached]
        new = (each for each in having if each.key not in known)
        require_unused(self.storage, new, domain.uid)
        stems = {each.stem for each in having}
        left = (each for each in volumes if each.detached and each.stem not in stems)
        # What was never made and is not wanted any more never was.
        return (*having, *(each for each in left if each.made or self.storage.there(each)))

    def _as_found(self, volume: Fitted) -> Fitted:
        """Return a volume that is to grow, or not, by what is there of it."""
        if (there := self.storage.there(volume)) is None:
            return volume
        self.storage.require_no_shrinking(volume, there)
        grows = size_of(there) < volume.size_mib * MIB and volume.access != Access.READ_ONLY
        return replace(volume, untold=True) if grows else volume

    def grow(self, volumes: tuple[Fitted, ...], domain: Domain) -> None:
        """Make volumes as large as they are to be, under a running guest's hands if it has them.

        A guest is to see also a file that is long enough: another machine may have lengthened it,
        or somebody died before it was written down. What is only read stays as it is.
        """
        live = domain.running.disks if domain.running else frozenset()
        for volume in volumes:
            if volume.detached or volume.access == Access.READ_ONLY:
                continue
            there = self.storage.there(volume)
            is_short = there is not None and size_of(there) < volume.size_mib * MIB
            if there is None or not (is_short or volume.untold):
                continue
            if (volume.target, serial_of(volume.name)) in live:
                size = max(volume.size_mib * MIB, size_of(there))  # others may have made it larger
                flag = libvirt.VIR_DOMAIN_BLOCK_RESIZE_BYTES
                domain.handle.blockResize(volume.target, size, flag)
            elif is_short:
                self.storage.grow(volume, there)

    def make(self, handle: libvirt.virDomain, mark: Mark) -> Mark:
        """Make what is missing, and write down that it is there."""
        made = tuple(each if each.detached else self._made(each) for each in mark.volumes)
        if made == mark.volumes:
            return mark
        mark = replace(mark, volumes=made)
        set_mark(handle, mark, libvirt.VIR_DOMAIN_AFFECT_CONFIG)
        return mark

    def _made(self, volume: Fitted) -> Fitted:
        grew = self.storage.make(volume)
        return replace(volume, made=True, untold=volume.untold or grew)

    def plug(self, mark: Mark, domain: Domain) -> None:
        """Have a running guest get the volumes of its definition, and lose those it lost."""
        now = read(domain.handle)  # with what is plugged in by now
        if now is None or now.power is Power.OFF or now.running is None:
            return
        live = now.running.disks
        cold: set[str] = set()
        for volume in mark.volumes:
            held = (volume.target, serial_of(volume.name)) in live
            if volume.detached and held:
                _unplug(domain.handle, volume)
            elif not volume.detached and not held and not _plugged(domain.handle, volume):
                cold.add(volume.key)
        after = tuple(replace(each, cold=each.key in cold) for each in mark.volumes)
        if after != mark.volumes:
            set_mark(domain.handle, replace(mark, volumes=after), libvirt.VIR_DOMAIN_AFFECT_CONFIG)


def _one_of_each(volumes: tuple[Fitted, ...]) -> tuple[Fitted, ...]:
    """Return volumes without those that are called as one which the machine has."""
    having = {each.stem for each in volumes if not each.detached}
    return tuple(each for each in volumes if not each.detached or each.stem not in having)


def _plugged(handle: libvirt.virDomain, volume: Fitted) -> bool:
    """Plug a volume into a running guest; say no where it has no slot left for one."""
    xml = ET.tostring(disk_of(volume), encoding="unicode")
    try:
        handle.attachDeviceFlags(xml, libvirt.VIR_DOMAIN_AFFECT_LIVE)
    except libvirt.libvirtError as error:
        if "No more available PCI slots" in str(error):
            return False
        raise
    return True


def _unplug(handle: libvirt.virDomain, volume: Fitted) -> None:
    """Ask a guest to let go of a volume; it takes its time, and is asked again."""
    xml = ET.tostring(disk_of(volume), encoding="unicode")
    try:
        handle.detachDeviceFlags(xml, libvirt.VIR_DOMAIN_AFFECT_LIVE)
    except libvirt.libvirtError as error:
        gone = code_of(error) == libvirt.VIR_ERR_DEVICE_MISSING
        asked = "already in the process of unplug" in str(error)
        if not gone and not asked:
            raise
