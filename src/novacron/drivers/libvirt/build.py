"""Makes, changes and removes domains with their volumes: short blocking pieces of work.

The definition comes first and goes last, so that whatever a machine has is found by it; the first
disk is made last of all, so that a machine which has it is complete.
"""

from collections.abc import Callable
from dataclasses import dataclass
from xml.etree import ElementTree as ET

import libvirt

from novacron.core.errors import Busy, OutOfCapacity, Rejected
from novacron.core.machine import MachinePlan, Power
from novacron.drivers.libvirt.domain import (
    Defined,
    Place,
    console_log,
    definition,
    plain_name,
    root_volume,
    seed_volume,
    spare_name,
    volume_prefix,
)
from novacron.drivers.libvirt.errors import NOT_THERE, code_of
from novacron.drivers.libvirt.facts import Machinery
from novacron.drivers.libvirt.host import LibvirtHost
from novacron.drivers.libvirt.look import Domain, find
from novacron.drivers.libvirt.mark import NAMESPACE, PREFIX
from novacron.drivers.libvirt.network import ensure_network
from novacron.drivers.libvirt.pool import Pool
from novacron.drivers.libvirt.seed import seed_of
from novacron.drivers.libvirt.stock import InStock

__all__ = ["Builder"]

MIB = 1024 * 1024
MOST_LIVE_VCPUS = 16


@dataclass(frozen=True, slots=True)
class Builder:
    """Works on the machines of one host."""

    host: LibvirtHost
    machinery: Machinery
    pool: Pool

    @property
    def _connection(self) -> libvirt.virConnect:
        return self.pool.connection

    def require_room(self, plan: MachinePlan) -> None:
        """Refuse what this host could never run, however empty it were."""
        if not self.machinery.can_run:
            raise OutOfCapacity(f"host {self.host.name} has no QEMU for x86_64 guests")
        size, (disk_mib, _) = plan.resources, self.pool.room()
        for what, wanted, there in (
            ("CPUs", size.vcpus, MOST_LIVE_VCPUS * self.machinery.cpus),
            ("MiB memory", size.memory_mib, self.machinery.memory_mib),
            ("MiB disk", size.disk_mib, disk_mib),
        ):
            if wanted > there:
                raise OutOfCapacity(f"host {self.host.name} has {there} {what}, not {wanted}")

    def define(self, plan: MachinePlan) -> Defined:
        """Write the machine down, if it is not yet; return what is written."""
        domain = find(self._connection, plan.ref.uid)
        if domain is None or not domain.configured.mark.shape:
            if self.host.network and plan.nics:
                ensure_network(self._connection, self.host.network)
            name = domain.configured.name if domain else self._free_name(plan)
            try:
                return self._write(plan, name, seed_volume(plan.ref.uid, seed_of(plan)))
            except libvirt.libvirtError:
                # Another process of ours may have written it down at the same moment.
                domain = find(self._connection, plan.ref.uid)
                if domain is None:
                    raise
        return domain.configured

    def has_root(self, uid: str) -> bool:
        """Say whether a machine has its first disk, on which its guest's data may be."""
        return self.pool.find(root_volume(uid)) is not None

    def furnish(self, plan: MachinePlan) -> None:
        """Give a machine that was written down all but its first disk."""
        seed = seed_of(plan)
        self.pool.fill(seed_volume(plan.ref.uid, seed), len(seed), [seed])
        self.pool.fill(console_log(plan.ref.uid), 0, [])

    def complete(self, plan: MachinePlan, image: InStock) -> None:
        """Give a machine its first disk; one that is there has the guest's data and stays."""
        uid, size = plan.ref.uid, plan.resources
        if image.virtual_bytes > size.disk_mib * MIB:
            needs = -(-image.virtual_bytes // MIB)
            raise Rejected(
                f"image {plan.image} needs a disk of {needs}Mi, not {size.disk_mib}Mi",
                reason="DiskTooSmall",
            )
        base = self.pool.find(image.volume)
        if base is None:
            raise Busy(f"image {plan.image} went away from host {self.host.name}")
        self.pool.overlay(root_volume(uid), size.disk_mib, base, image.format)

    def start(self, domain: Domain) -> None:
        """Start a guest; its network may have been taken down since it was made."""
        if domain.power is Power.OFF:
            if self.host.network:
                ensure_network(self._connection, self.host.network)
            domain.handle.create()

    def change(self, plan: MachinePlan, domain: Domain) -> None:
        """Give a machine what the plan says, and a running guest as much of it as it can take."""
        uid, size = plan.ref.uid, plan.resources
        if size.disk_mib < domain.configured.mark.disk_mib:
            raise Rejected(
                f"a disk never shrinks: it has {domain.configured.mark.disk_mib}Mi",
                reason="DiskCannotShrink",
            )
        self.require_room(plan)
        self._grow_disk(uid, size.disk_mib, domain)
        seed = seed_of(plan)
        name = seed_volume(uid, seed)
        in_use = {name, *(each.seed for each in (domain.running,) if each)}
        if name != domain.configured.seed:
            self.pool.fill(name, len(seed), [seed])
        self._write(plan, domain.configured.name, name)
        self.pool.remove_all(f"{volume_prefix(uid)}seed-", except_for=frozenset(in_use))
        if domain.running is not None:
            self._change_running(plan, domain)

    def remove(self, uid: str, domain: Domain | None, *, disks: bool = True) -> None:
        """Remove a machine and all it has, or only what its host knows of it."""
        if domain is not None and domain.power is Power.ON:
            _unless_gone(domain.handle.destroy, libvirt.VIR_ERR_OPERATION_INVALID)
        if disks:
            self.pool.remove_all(volume_prefix(uid))
        if domain is not None:
            flags = (
                libvirt.VIR_DOMAIN_UNDEFINE_MANAGED_SAVE
                | libvirt.VIR_DOMAIN_UNDEFINE_SNAPSHOTS_METADATA
                | libvirt.VIR_DOMAIN_UNDEFINE_CHECKPOINTS_METADATA
                | libvirt.VIR_DOMAIN_UNDEFINE_NVRAM
            )
            _unless_gone(lambda: domain.handle.undefineFlags(flags))

    def _free_name(self, plan: MachinePlan) -> str:
        """Return the plain name unless another domain has it; nobody else's is ever touched."""
        name = plain_name(plan.ref)
        try:
            self._connection.lookupByName(name)
        except libvirt.libvirtError as error:
            if code_of(error) in NOT_THERE:
                return name
            raise
        return spare_name(plan.ref)

    def draft(self, plan: MachinePlan) -> str:
        """Return how a machine that comes from elsewhere would be written down here."""
        if self.host.network and plan.nics:
            ensure_network(self._connection, self.host.network)
        seed = seed_volume(plan.ref.uid, seed_of(plan))
        return definition(plan, self._free_name(plan), seed, self._place)

    @property
    def _place(self) -> Place:
        return Place(
            pool=self.host.pool,
            pool_path=self.pool.path,
            network=self.host.network,
            accelerator=self.machinery.accelerator,
            max_vcpus=min(self.machinery.cpus, MOST_LIVE_VCPUS),
        )

    def _write(self, plan: MachinePlan, name: str, seed: str) -> Defined:
        handle = self._connection.defineXML(definition(plan, name, seed, self._place))
        # What libvirt made of it is what a later look is compared with.
        defined = Defined.read(handle.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE))
        assert defined is not None
        mark = defined.mark.element()
        mark.set("shape", defined.shape)
        _set_mark(handle, mark, libvirt.VIR_DOMAIN_AFFECT_CONFIG)
        return defined

    def _grow_disk(self, uid: str, size_mib: int, domain: Domain) -> None:
        if domain.power is Power.OFF:
            self.pool.grow(root_volume(uid), size_mib)
        elif size_mib > domain.configured.mark.disk_mib:
            flag = libvirt.VIR_DOMAIN_BLOCK_RESIZE_BYTES
            domain.handle.blockResize("vda", size_mib * MIB, flag)

    def _change_running(self, plan: MachinePlan, domain: Domain) -> None:
        assert domain.running is not None
        wanted = plan.resources.vcpus
        if domain.running.vcpus < wanted <= MOST_LIVE_VCPUS:
            most = domain.handle.vcpusFlags(
                libvirt.VIR_DOMAIN_VCPU_MAXIMUM | libvirt.VIR_DOMAIN_AFFECT_LIVE
            )
            if wanted <= most:
                domain.handle.setVcpusFlags(wanted, libvirt.VIR_DOMAIN_AFFECT_LIVE)
        mark = domain.running.mark.element()
        mark.set("disk", str(plan.resources.disk_mib))
        _set_mark(domain.handle, mark, libvirt.VIR_DOMAIN_AFFECT_LIVE)


def _set_mark(handle: libvirt.virDomain, mark: ET.Element, flags: int) -> None:
    mark.tag = mark.tag.rpartition("}")[2]  # libvirt puts it into the namespace itself
    text = ET.tostring(mark, encoding="unicode")
    handle.setMetadata(libvirt.VIR_DOMAIN_METADATA_ELEMENT, text, PREFIX, NAMESPACE, flags)


def _unless_gone(action: Callable[[], object], *also: int) -> None:
    try:
        action()
    except libvirt.libvirtError as error:
        if code_of(error) not in {*NOT_THERE, *also}:
            raise
