"""Where a host keeps volumes: its own pool, and a pool for each storage class. Blocks."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import libvirt

from novacron.core.errors import DriverError, OutOfCapacity, Rejected
from novacron.core.machine import MachinePlan, MachineRef
from novacron.core.volume import Access, Volume, require_offered
from novacron.drivers.libvirt.fitted import Fitted, id_of, stem_of
from novacron.drivers.libvirt.host import LibvirtHost
from novacron.drivers.libvirt.pool import MISSING, Pool, class_pool

__all__ = ["COMING", "Storage", "size_of"]

QCOW2, RAW = ".qcow2", ".raw"
# How a file is called that says of another that it is not whole, because it is being copied.
COMING = ".coming"


def size_of(volume: libvirt.virStorageVol) -> int:
    """Return how many bytes a volume has for its guest.

    Of a raw one that is the length of its file: libvirt looks into it, and takes what a guest wrote
    to its beginning for what the file is.
    """
    if not volume.name().endswith(RAW):
        return int(volume.info()[1])
    return int(volume.infoFlags(libvirt.VIR_STORAGE_VOL_GET_PHYSICAL)[2])


@dataclass(frozen=True, slots=True)
class Storage:
    """Finds, makes, grows and removes volumes on one host."""

    host: LibvirtHost
    own: Pool

    def places(
        self,
        plan: MachinePlan,
        refusal: type[OutOfCapacity | Rejected],
        coming: frozenset[str] = frozenset(),
        before: Iterable[Fitted] = (),
    ) -> dict[str, tuple[Volume, str, str]]:
        """Return pool and file of each volume; raise the refusal for one that cannot be here.

        ``coming`` are files that will be here with a machine that moves, ``before`` are the volumes
        that it has, or had until they were taken off it.
        """
        known = {each.stem: each for each in before}
        found: dict[str, tuple[Volume, str, str]] = {}
        for volume in plan.volumes or ():
            old = known.get(stem_of(plan.ref, volume))
            pool = self._pool_for(volume, refusal, old)
            file = self._file(plan.ref, volume, pool, refusal, coming)
            if old is not None:
                self._require_same(volume, file, old)
            found[volume.name] = (volume, pool.name, file)
        return found

    def pool(self, name: str) -> Pool:
        """Return a pool by its name."""
        return self.own if name == self.own.name else class_pool(self.own.connection, name)

    def pools(self) -> Iterator[tuple[str | None, str]]:
        """Return the name of every pool with the class it is for."""
        yield None, self.own.name
        for name, kind in self.host.storage_classes.items():
            yield name, kind.pool

    def there(self, volume: Fitted) -> libvirt.virStorageVol | None:
        """Return a volume's file, or None when it is not there."""
        try:
            return self.pool(volume.pool).find(volume.file)
        except Rejected:
            return None  # nothing is in a pool that is not there

    def files(self, pools: Iterable[str]) -> frozenset[str]:
        """Return the files of several pools, by pool and name."""
        found: set[str] = set()
        for name in pools:
            with suppress(Rejected):
                found |= {f"{name}/{file}" for file in self.pool(name).names()}
        return frozenset(found)

    def make(self, volume: Fitted) -> bool:
        """Make a volume that is not there; one that was there once is lost, and nobody's to make.

        One that is there is never made smaller, and grows unless others may be reading it. Say
        whether it did.
        """
        pool = self.pool(volume.pool)
        if (there := pool.find(volume.file)) is None:
            if volume.made:
                raise Rejected(
                    f"volume {volume.name} is not in pool {volume.pool} of host {self.host.name} "
                    f"any more: bring {volume.file} back, or take the volume off the machine; "
                    "for an empty one give it another name",
                    reason="VolumeLost",
                )
            pool.make(volume.file, volume.size_mib, volume.format)
            return False
        if volume.made:
            # It came in a move, while its pool was away for whoever took the machine in.
            pool.remove(f"{volume.file}{COMING}")
        self.require_no_shrinking(volume, there)
        grows = volume.access != Access.READ_ONLY and size_of(there) < volume.size_mib * 1024**2
        if grows:
            self.grow(volume, there)
        return grows

    def grow(self, volume: Fitted, there: libvirt.virStorageVol) -> None:
        """Make a volume larger that no guest has.

        A raw one by its last byte: libvirt would have qemu-img open what a guest made it look like.
        """
        size = volume.size_mib * 1024**2
        if volume.file.endswith(RAW):
            self.pool(volume.pool).extend(volume.file, size)
        else:
            there.resize(size)

    def require_no_shrinking(self, volume: Fitted, there: libvirt.virStorageVol) -> None:
        """Refuse a size that would cut off data."""
        has_mib = size_of(there) // 1024**2
        if has_mib > volume.size_mib:
            raise Rejected(
                f"volume {volume.name} has {has_mib}Mi and never shrinks: ask for at least that",
                reason="VolumeCannotShrink",
            )

    def _pool_for(
        self, volume: Volume, refusal: type[OutOfCapacity | Rejected], old: Fitted | None
    ) -> Pool:
        host, name = self.host.name, volume.storage_class
        kind = self.host.storage_classes.get(name) if name is not None else None
        require_offered(
            volume,
            shared=kind.shared if kind else None,
            host=host,
            field="spec.libvirt.storageClasses",
            refusal=refusal,
        )
        pool = self.own if kind is None else self.pool(kind.pool)
        if old is not None and old.storage_class == (name or ""):
            pool = self._home(old, pool)
        most_mib = int(pool.capacity_mib * self.host.disk_overcommit)
        if kind is not None and volume.size_mib > most_mib:
            raise refusal(
                f"pool {pool.name} of host {host} holds {most_mib}Mi, less than "
                f"the {volume.size_mib}Mi of volume {volume.name}",
                reason="HostFull",
            )
        return pool

    def _home(self, old: Fitted, meant: Pool) -> Pool:
        """Return the pool that a machine's volume is in, which its class may have had before.

        That is the one meant by now for what was not made yet, and for what somebody moved there.
        """
        if old.pool == meant.name:
            return meant
        is_elsewhere = not old.made or meant.find(old.file) is not None
        return meant if is_elsewhere and not self._still_has(old) else self.pool(old.pool)

    def _still_has(self, old: Fitted) -> bool:
        """Say whether a volume is where it was; of a pool that is away for now nobody can tell."""
        try:
            return self.pool(old.pool).find(old.file) is not None
        except Rejected as error:
            if error.reason != MISSING:
                raise
            return False

    def _require_same(self, volume: Volume, file: str, old: Fitted) -> None:
        """Refuse a volume of the same name as one of another kind that the machine had and kept."""
        is_same = (volume.storage_class or "", file) == (old.storage_class, old.file)
        if not is_same and self._still_has(old):
            raise Rejected(
                f"volume {id_of(old.file)} of storage class {old.storage_class or 'none'} and "
                f"access mode {old.access} was taken off this machine and is kept: give volume "
                f"{volume.name} another name, or delete that one",
                reason="VolumeExists",
            )

    def _file(
        self,
        ref: MachineRef,
        volume: Volume,
        pool: Pool,
        refusal: type[DriverError],
        coming: frozenset[str],
    ) -> str:
        stem = stem_of(ref, volume)
        if volume.existing is None:
            return stem + (RAW if volume.access is Access.MANY else QCOW2)
        ends = (QCOW2, RAW)
        there = next((stem + end for end in ends if stem + end in coming), None)
        whole = (stem + end for end in ends if not pool.find(stem + end + COMING))
        there = there or next((file for file in whole if pool.find(file)), None)
        if there is None:
            raise refusal(
                f"there is no volume {volume.existing} of namespace {ref.namespace} in pool "
                f"{pool.name} of host {self.host.name}",
                reason="VolumeMissing",
            )
        if volume.access is Access.MANY and there.endswith(QCOW2):
            raise refusal(
                f"volume {volume.existing} was made for one machine at a time and cannot be "
                "ReadWriteMany",
                reason="VolumeNotShared",
            )
        return there
