"""Makes, changes and removes domains with their volumes: short blocking pieces of work.

The definition comes first and goes last, so that whatever a machine has is found by it; the first
disk is made last of all, so that a machine which has it is complete.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta

import libvirt

from novacron.core.errors import Busy, OutOfCapacity, Rejected
from novacron.core.machine import MachinePlan, Power
from novacron.core.migration import DISK_LOST
from novacron.drivers.libvirt.belongings import refresh
from novacron.drivers.libvirt.domain import (
    console_log,
    plain_name,
    root_volume,
    spare_name,
    volume_prefix,
)
from novacron.drivers.libvirt.errors import NOT_THERE, code_of
from novacron.drivers.libvirt.facts import Machinery
from novacron.drivers.libvirt.fitted import Fitted, fitted
from novacron.drivers.libvirt.growth import is_to_be_told, tell_of_growth, use_cpus
from novacron.drivers.libvirt.holders import require_unused
from novacron.drivers.libvirt.host import LibvirtHost
from novacron.drivers.libvirt.look import Domain, find, needed_volumes, read
from novacron.drivers.libvirt.mark import Mark, set_mark
from novacron.drivers.libvirt.memory import plug_memory
from novacron.drivers.libvirt.network import ensure_network
from novacron.drivers.libvirt.plugging import plug_in, pull_out
from novacron.drivers.libvirt.pool import Pool
from novacron.drivers.libvirt.ports import Port, port_of
from novacron.drivers.libvirt.seed import Seed, seed_of
from novacron.drivers.libvirt.snapshot_book import take_out
from novacron.drivers.libvirt.snapshot_record import seeds
from novacron.drivers.libvirt.snapshot_removal import remove_keeper
from novacron.drivers.libvirt.standstill import resumed
from novacron.drivers.libvirt.stock import InStock
from novacron.drivers.libvirt.storage import Storage
from novacron.drivers.libvirt.volume_plugging import Plugging
from novacron.drivers.libvirt.writing import MOST_LIVE_VCPUS, Writing, note_guest, wired

__all__ = ["Builder"]

MIB = 1024 * 1024
LOOK_AGAIN = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class Builder:
    """Works on the machines of one host."""

    host: LibvirtHost
    machinery: Machinery
    pool: Pool

    @property
    def connection(self) -> libvirt.virConnect:
        """The connection all this goes by."""
        return self.pool.connection

    @property
    def storage(self) -> Storage:
        """Where the host keeps volumes."""
        return Storage(self.host, self.pool)

    @property
    def _writing(self) -> Writing:
        return Writing(self.host, self.machinery, self.pool)

    @property
    def _plugging(self) -> Plugging:
        return Plugging(self.storage)

    def is_complete(self, domain: Domain) -> bool:
        """Say whether a machine has all its disks, as one that runs must have."""
        # Asked for by name: the list of all grows with the host's machines.
        return domain.power is Power.ON or all(
            self.pool.find(name) for name in needed_volumes(domain.configured)
        )

    def require_disk(self, domain: Domain) -> None:
        """Refuse to make a first disk anew that a guest had: it may be back with its storage."""
        if not domain.configured.mark.begun or self.has_root(domain.uid):
            return
        refresh(self.pool)
        if not self.has_root(domain.uid):
            raise Rejected(
                f"its disk {root_volume(domain.uid)} is not in pool {self.host.pool} of host "
                f"{self.host.name} any more: mount the pool's storage or put the file back; only "
                "if it is gone for good, delete the machine, which removes nothing from storage "
                "that is not mounted",
                reason=DISK_LOST,
                again=LOOK_AGAIN,
            )

    def require_room(self, plan: MachinePlan) -> None:
        """Refuse what this host could never run, however empty it were."""
        if not self.machinery.can_run:
            raise OutOfCapacity(f"host {self.host.name} has no QEMU for x86_64 guests")
        size = plan.resources
        disk_mib = int(self.pool.capacity_mib * self.host.disk_overcommit)
        for what, wanted, there in (
            ("CPUs", size.vcpus, MOST_LIVE_VCPUS * self.machinery.cpus),
            ("MiB memory", size.memory_mib, self.machinery.memory_mib),
            ("MiB disk", size.disk_mib, disk_mib),
        ):
            if wanted > there:
                raise OutOfCapacity(f"host {self.host.name} has {there} {what}, not {wanted}")

    def define(self, plan: MachinePlan, seed: Seed, domain: Domain | None) -> Domain:
        """Write the machine down, if it is not yet."""
        if domain is not None and domain.configured.mark.shape:
            return domain
        self._ensure_network(port_of(self.host, nic) for nic in plan.nics)
        volumes = self._volumes_for(plan)
        name = domain.configured.name if domain else plain_name(plan.ref)
        # It may come back to a disk that it had before, here or on another host.
        begun = self.has_root(plan.ref.uid) or (domain.configured.mark.begun if domain else False)
        try:
            handle, written = self._writing.new(plan, name, seed.name, volumes, begun=begun)
        except libvirt.libvirtError:
            if domain is not None:
                raise
            # Another process of ours may have written it down at the same moment.
            if there := find(self.connection, plan.ref.uid):
                return there
            name = self._free_name(plan)
            handle, written = self._writing.new(plan, name, seed.name, volumes, begun=begun)
        if domain is not None:
            return replace(domain, configured=written)
        off = (libvirt.VIR_DOMAIN_SHUTOFF, libvirt.VIR_DOMAIN_SHUTOFF_UNKNOWN)
        return Domain(handle, written, None, *off, without_snapshots=True)

    def has_root(self, uid: str) -> bool:
        """Say whether a machine has its first disk, on which its guest's data may be."""
        return self.pool.find(root_volume(uid)) is not None

    def furnish(self, plan: MachinePlan, seed: Seed) -> None:
        """Give a machine that was written down all but its first disk."""
        self._sow(seed)
        self.pool.fill(console_log(plan.ref.uid), 0, [])

    def complete(self, plan: MachinePlan, image: InStock, domain: Domain) -> Domain:
        """Give a machine its first disk; one that is there has the guest's data and stays."""
        uid, size = plan.ref.uid, plan.resources
        if image.virtual_bytes > size.disk_mib * MIB:
            needs = -(-image.virtual_bytes // MIB)
            raise Rejected(
                f"image {plan.image} needs a disk of {needs}Mi, not {size.disk_mib}Mi",
                reason="DiskTooSmall",
            )
        domain = domain.marked(self._plugging.make(domain.handle, domain.configured.mark))
        new = self.pool.overlay(root_volume(uid), size.disk_mib, image.volume, image.format)
        if not new:
            take_out(self.pool, domain)
        elif not self.pool.is_there(image.mark):
            # Somebody makes room at this very moment; nothing was written to the disk yet. Whoever
            # does takes the mark away first and looks for disks then, so one of us sees the other.
            self.pool.remove(root_volume(uid))
            with suppress(libvirt.libvirtError):  # or the next attempt finds it here again
                self.pool.refresh()
            raise Busy(f"image {plan.image} went away from host {self.host.name}")
        return domain

    def start(self, domain: Domain) -> Domain:
        """Start a guest, or have it go on; its network may have been taken down meanwhile."""
        if domain.power is Power.ON:
            return resumed(domain)
        self._ensure_network(each.port for each in domain.configured.plugged)
        domain = note_guest(domain)
        domain.handle.createWithFlags()  # as create(), which asks for its number as well
        return domain.started()

    def change(self, plan: MachinePlan, domain: Domain) -> None:
        """Give a machine what the plan says, and a running guest as much of it as it can take."""
        uid, size = plan.ref.uid, plan.resources
        if size.disk_mib < domain.configured.mark.disk_mib:
            raise Rejected(
                f"a disk never shrinks: it has {domain.configured.mark.disk_mib}Mi",
                reason="DiskCannotShrink",
            )
        self.require_room(plan)
        plugged = wired(self.host, plan)
        self._ensure_network(each.port for each in plugged)
        volumes = self._plugging.fit(plan, domain)
        self._grow_disk(uid, size.disk_mib, domain)
        self._plugging.grow(volumes, domain)
        # Before it is written down: what cannot be plugged in must not be in the way of a restart.
        plug_in(domain, plugged)
        seed = seed_of(plan)
        in_use = {seed.name, *(each.seed for each in (domain.running,) if each)}
        # Not by the name alone: a guest that moved brought the one that it was started with.
        if seed.name != domain.configured.seed or self.pool.find(seed.name) is None:
            self._sow(seed)
        mark = self._written_anew(plan, seed, volumes, domain)
        in_use |= seeds(domain.handle)
        self.pool.remove_all(f"{volume_prefix(uid)}seed-", except_for=frozenset(in_use))
        pull_out(domain, plugged)
        if domain.running is not None:
            self._plugging.plug(mark, domain)
            self._change_running(plan, domain)
            if is_to_be_told(domain.marked(mark)) and (now := read(domain.handle)):
                tell_of_growth(now)

    def remove(self, uid: str, domain: Domain | None, *, disks: bool = True) -> None:
        """Remove a machine and all it has, or only what its host knows of it."""
        if domain is not None and domain.power is Power.ON:
            _unless_gone(domain.handle.destroy, libvirt.VIR_ERR_OPERATION_INVALID)
        if disks:
            self.pool.remove_all(volume_prefix(uid))
        if domain is not None:
            remove_keeper(self.connection, domain.handle.UUIDString())
            flags = (
                libvirt.VIR_DOMAIN_UNDEFINE_MANAGED_SAVE
                | libvirt.VIR_DOMAIN_UNDEFINE_SNAPSHOTS_METADATA
                | libvirt.VIR_DOMAIN_UNDEFINE_CHECKPOINTS_METADATA
                | libvirt.VIR_DOMAIN_UNDEFINE_NVRAM
            )
            _unless_gone(lambda: domain.handle.undefineFlags(flags))

    def _written_anew(
        self, plan: MachinePlan, seed: Seed, volumes: tuple[Fitted, ...], domain: Domain
    ) -> Mark:
        """Write down what a machine is to have, make it, and return its mark."""
        before, name = domain.configured.mark, domain.configured.name
        begun = domain.running is not None or before.begun
        untold = before.untold or before.disk_mib < plan.resources.disk_mib
        _, written = self._writing.changed(
            plan, name, seed.name, volumes, begun=begun, untold=untold
        )
        return self._plugging.make(domain.handle, written.mark)

    def _ensure_network(self, ports: Iterable[Port]) -> None:
        """Have the host's own network, where one of the ports is in it."""
        if self.host.network and Port("network", self.host.network) in ports:
            ensure_network(self.connection, self.host.network)

    def _free_name(self, plan: MachinePlan) -> str:
        """Return the plain name unless another domain has it; nobody else's is ever touched."""
        name = plain_name(plan.ref)
        try:
            self.connection.lookupByName(name)
        except libvirt.libvirtError as error:
            if code_of(error) in NOT_THERE:
                return name
            raise
        return spare_name(plan.ref)

    def draft(self, plan: MachinePlan, coming: frozenset[str]) -> str:
        """Return how a machine would be written down here that comes with these volumes."""
        volumes = self._volumes_for(plan, coming)
        name, seed = self._free_name(plan), seed_of(plan).name
        return self._writing.draft(plan, name, seed, volumes)

    def _volumes_for(
        self, plan: MachinePlan, coming: frozenset[str] = frozenset()
    ) -> tuple[Fitted, ...]:
        """Return the volumes of a machine that is not here yet; refuse what another one has."""
        volumes = fitted(self.storage.places(plan, OutOfCapacity, coming), ())
        require_unused(self.storage, volumes, plan.ref.uid)
        return volumes

    def _sow(self, seed: Seed) -> None:
        """Make the disk with the first instructions; its name is that of its content."""
        self.pool.fill(seed.name, seed.length, [seed.content])

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
                if domain.running.agent:
                    use_cpus(domain.handle, wanted)
        plug_memory(domain.handle, domain.running.memory_mib, plan.resources.memory_mib)
        mark = replace(domain.running.mark, disk_mib=plan.resources.disk_mib)
        set_mark(domain.handle, mark, libvirt.VIR_DOMAIN_AFFECT_LIVE)


def _unless_gone(action: Callable[[], object], *also: int) -> None:
    try:
        action()
    except libvirt.libvirtError as error:
        if code_of(error) not in {*NOT_THERE, *also}:
            raise
