"""Gives machines their volumes: made before they are plugged in, and never thrown away. Blocks.

Everything is found again by the mark, so each piece of work may be cut short and done again.
"""

from dataclasses import dataclass, replace
from xml.etree import ElementTree as ET

import libvirt

from novacron.core.errors import Rejected
from novacron.core.machine import MachinePlan, Power
from novacron.drivers.libvirt.errors import code_of
from novacron.drivers.libvirt.fitted import Fitted, disk_of, fitted, serial_of
from novacron.drivers.libvirt.growth import grow_file_systems
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
        before = domain.configured.mark.volumes
        if plan.volumes is None:
            return before
        places = self.storage.places(plan, Rejected)
        live = domain.running.disks if domain.running else frozenset()
        volumes = fitted(places, before, live)
        known = {each.key for each in before if not each.detached}
        having = [each for each in volumes if not each.detached]
        for volume in having:
            if (there := self.storage.there(volume)) is not None:
                self.storage.require_no_shrinking(volume, there)
        new = (each for each in having if each.key not in known)
        require_unused(self.storage, new, domain.uid)
        # What was never made and is not wanted any more never was.
        return tuple(
            each for each in volumes if not each.detached or each.made or self.storage.there(each)
        )

    def grow(self, volumes: tuple[Fitted, ...], domain: Domain) -> None:
        """Make volumes as large as they are to be, under a running guest's hands if it has them."""
        before = {each.key: each.size_mib for each in domain.configured.mark.volumes}
        live = domain.running.disks if domain.running else frozenset()
        for volume in volumes:
            there = None if volume.detached else self.storage.there(volume)
            if there is None:
                continue
            held = (volume.target, serial_of(volume.name)) in live
            if size_of(there) < volume.size_mib * MIB:
                if not held:
                    self.storage.grow(volume, there)
                    continue
                flag = libvirt.VIR_DOMAIN_BLOCK_RESIZE_BYTES
                domain.handle.blockResize(volume.target, volume.size_mib * MIB, flag)
            elif before.get(volume.key, 0) >= volume.size_mib:
                continue
            # Also of what grew before somebody died: it is written down after the guest was told.
            if held and domain.running and domain.running.agent:
                grow_file_systems(domain.handle, serial_of(volume.name))

    def make(self, handle: libvirt.virDomain, mark: Mark) -> Mark:
        """Make what is missing, and write down that it is there."""
        for volume in mark.volumes:
            if not volume.detached:
                self.storage.make(volume)
        made = tuple(each if each.detached else replace(each, made=True) for each in mark.volumes)
        if made == mark.volumes:
            return mark
        mark = replace(mark, volumes=made)
        set_mark(handle, mark, libvirt.VIR_DOMAIN_AFFECT_CONFIG)
        return mark

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
