"""Volumes that outlive their machines on one libvirt host."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain

import libvirt

from novacron.core.errors import Busy, Rejected
from novacron.core.host import ClassFacts, HostFacts
from novacron.core.machine import MachineRef
from novacron.core.volume import KeptVolume, Volume
from novacron.drivers.libvirt.belongings import marks_of, standing_pools, storage_marks
from novacron.drivers.libvirt.build import Builder
from novacron.drivers.libvirt.fitted import PREFIX
from novacron.drivers.libvirt.foreign import Foreign
from novacron.drivers.libvirt.holders import holder
from novacron.drivers.libvirt.look import read_definitions
from novacron.drivers.libvirt.mark import Mark
from novacron.drivers.libvirt.pool import Pool
from novacron.drivers.libvirt.storage import COMING, size_of
from novacron.drivers.libvirt.work import HostWork

__all__ = ["LibvirtVolumes", "shelved"]

MIB = 1024 * 1024
ENDINGS = (".qcow2", ".raw")


class LibvirtVolumes(HostWork):
    """Satisfies ``VolumeKeeping``."""

    async def kept_volumes(self, host: str) -> Sequence[KeptVolume]:
        """Tell of every volume that no machine of this host has."""
        del host
        return await self._work(lambda builder: list(shelved(builder).kept))

    async def reclaim(self, ref: MachineRef, volumes: Iterable[Volume]) -> None:
        """Delete volumes that were made for a machine which is gone."""

        def remove(builder: Builder) -> None:
            pools, shut = _all_pools(builder)
            for volume in volumes:
                one = volume.id_for(ref.name, ref.uid)
                if _holder(builder, ref.namespace, one) is not None:
                    continue
                why = shut.get(volume.storage_class or "")
                if not _removed(pools, ref.namespace, one) and why is not None:
                    raise why  # it may be in there

        await self._work(remove)

    async def delete_volume(self, host: str, namespace: str, volume: str) -> None:
        """Delete one volume by its id."""

        def remove(builder: Builder) -> None:
            if (mark := _holder(builder, namespace, volume)) is not None:
                raise Rejected(
                    f"volume {volume} is attached to {mark.namespace}/{mark.name}: take it off "
                    "that machine first",
                    reason="VolumeInUse",
                )
            pools, shut = _all_pools(builder)
            if not _removed(pools, namespace, volume):
                if shut:
                    raise Rejected(
                        f"volume {volume} of namespace {namespace} is in no pool of host {host} "
                        f"that can be used, but: {'; '.join(map(str, shut.values()))}",
                        reason="PoolUnusable",
                    )
                raise Rejected(
                    f"there is no volume {volume} of namespace {namespace} on host {host}",
                    reason="VolumeMissing",
                )

        await self._work(remove)


@dataclass(frozen=True, slots=True)
class Shelved:
    """Volumes that no machine of a host has, and its pools: each with what others know it by.

    ``shut`` are the classes whose pools cannot be used, and why.
    """

    kept: tuple[KeptVolume, ...]
    pools: tuple[tuple[str | None, Pool, str], ...]
    shut: Mapping[str, str]

    def told(self, facts: HostFacts, foreign: Foreign) -> HostFacts:
        """Return a host's facts with what is known of its storage. Blocks."""
        ids = {storage_class: storage for storage_class, _, storage in self.pools}
        taken = {storage_class: foreign.mib(pool) for storage_class, pool, _ in self.pools}
        return replace(
            facts,
            kept_volumes=self.kept,
            storage_ids=frozenset(filter(None, ids.values())),
            own_storage=ids.get(None, ""),
            foreign_mib=taken.get(None, 0),
            classes=(
                *(
                    ClassFacts(name, pool.capacity_mib, taken[name], storage)
                    for name, pool, storage in self.pools
                    if name is not None
                ),
                # Of a class of which nothing is told there is no end.
                *(ClassFacts(name, 0, trouble=why) for name, why in self.shut.items()),
            ),
        )


def shelved(builder: Builder) -> Shelved:
    """Look through all pools of a host. Blocks."""
    found: list[tuple[Pool, str, str | None, str]] = []
    opened, shut = _pools(builder)
    pools = tuple((each, pool, _storage_id(pool)) for each, pool in opened)
    for storage_class, pool, storage in pools:
        names = (name for name in sorted(pool.names()) if name.startswith(PREFIX))
        found += [(pool, name, storage_class, storage) for name in names]
    # After the files, which are made later than the definition that has them, and go earlier.
    held = _held_by_machines(builder) if found else frozenset()
    kept = [_told(*each) for each in found if f"{each[0].name}/{each[1]}" not in held]
    why = {storage_class: str(error) for storage_class, error in shut.items()}
    return Shelved(tuple(chain.from_iterable(kept)), pools, why)


def _held_by_machines(builder: Builder) -> frozenset[str]:
    written = read_definitions(builder.connection)
    return frozenset(volume.key for each in written for volume in each.mark.volumes)


def _pools(builder: Builder) -> tuple[list[tuple[str | None, Pool]], Mapping[str, Rejected]]:
    """Return the pools that can be used, and of which classes not, and why."""
    opened: list[tuple[str | None, Pool]] = []
    shut: dict[str, Rejected] = {}
    for storage_class, name in builder.storage.pools():
        try:
            opened.append((storage_class, builder.storage.pool(name)))
        except Rejected as error:
            assert storage_class is not None, "the builder has the host's own pool"
            shut[storage_class] = error
    return opened, shut


def _all_pools(builder: Builder) -> tuple[list[Pool], Mapping[str, Rejected]]:
    """Return all pools that can be used, also such as no class has any more, and the others."""
    opened, shut = _pools(builder)
    found = {pool.name: pool for _, pool in opened}
    former = {pool.name: pool for pool in standing_pools(builder.connection)}
    return list((former | found).values()), shut


def _storage_id(pool: Pool) -> str:
    """Return what a pool is known by to all who see it, marked if it is not yet.

    What others made in it is seen only after it was looked through, which cannot always be done.
    """
    with suppress(Busy, libvirt.libvirtError):
        if marks_of(pool):
            pool.refresh()  # not worth waiting for while a volume is being filled
        else:
            storage_marks(pool)
    return min(marks_of(pool), default="")


def _told(pool: Pool, file: str, storage_class: str | None, storage: str) -> Iterator[KeptVolume]:
    namespace, _, rest = file.removeprefix(PREFIX).partition(".")
    volume = pool.find(file)
    if volume is not None and rest.endswith(ENDINGS) and pool.find(file + COMING) is None:
        size_mib = size_of(volume) // MIB
        yield KeptVolume(namespace, rest.rpartition(".")[0], size_mib, storage_class, storage)


def _files(namespace: str, volume: str) -> frozenset[str]:
    return frozenset(f"{PREFIX}{namespace}.{volume}{ending}" for ending in ENDINGS)


def _removed(pools: Iterable[Pool], namespace: str, volume: str) -> bool:
    """Delete a volume wherever it is; say whether it was there."""
    found = False
    for pool in pools:
        for file in _files(namespace, volume):
            found |= pool.find(file) is not None
            pool.remove(file)
            pool.remove(file + COMING)
    return found


def _holder(builder: Builder, namespace: str, volume: str) -> Mark | None:
    """Return the mark of the machine that has a volume."""
    files = _files(namespace, volume)
    return holder(builder.connection, lambda each: each.file in files)
