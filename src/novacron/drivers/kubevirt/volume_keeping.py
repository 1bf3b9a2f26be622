"""Volumes of machines that are gone: told of, and deleted when somebody says so."""

from collections.abc import Iterable, Sequence

from novacron.core.errors import Rejected
from novacron.core.machine import MachineRef
from novacron.core.volume import KeptVolume, Reclaim, Volume
from novacron.drivers.kubevirt.cluster import Cluster
from novacron.drivers.kubevirt.disks import claimed_mib, volume_id_of
from novacron.drivers.kubevirt.errors import in_our_words
from novacron.drivers.kubevirt.names import CLAIMS, DISK, RECLAIM, UID
from novacron.drivers.kubevirt.removal import remove
from novacron.runtime.resource import Object

__all__ = ["VolumeKeeper"]


class VolumeKeeper:
    """Satisfies ``core.volume.VolumeKeeping``."""

    __slots__ = ()
    cluster: Cluster

    async def kept_volumes(self, host: str) -> Sequence[KeptVolume]:
        """Tell of every volume whose machine is gone."""
        await self.cluster.reached(host)
        return [
            _kept(claim)
            for claim in self.cluster.claims.cache.objects()
            if claim["metadata"]["labels"][UID] not in self.cluster.machines.of
            and claim["metadata"]["labels"].get(RECLAIM) == Reclaim.RETAIN.value
            and "deletionTimestamp" not in claim["metadata"]
        ]

    async def reclaim(self, ref: MachineRef, volumes: Iterable[Volume]) -> None:
        """Delete volumes that were made for a machine which is gone."""
        await self.cluster.ready()
        doomed = {volume.name for volume in volumes}
        with in_our_words(refused=self.cluster.refused):
            for claim in self.cluster.of(ref.uid).claims:
                if claim["metadata"]["labels"].get(DISK) in doomed:
                    await remove(self.cluster.client, CLAIMS, claim)

    async def delete_volume(self, host: str, namespace: str, volume: str) -> None:
        """Delete one volume by its id."""
        await self.cluster.reached(host)
        for claim in self.cluster.claims.cache.objects():
            if (claim["metadata"]["namespace"], volume_id_of(claim)) != (namespace, volume):
                continue
            if claim["metadata"]["labels"][UID] in self.cluster.machines.of:
                raise Rejected(
                    f"volume {volume} is a machine's: take it off that machine first",
                    reason="VolumeInUse",
                )
            with in_our_words(refused=self.cluster.refused):
                await remove(self.cluster.client, CLAIMS, claim)
            return
        raise Rejected(
            f"there is no volume {volume} of namespace {namespace} on host {host}",
            reason="VolumeMissing",
        )


def _kept(claim: Object) -> KeptVolume:
    return KeptVolume(
        claim["metadata"]["namespace"],
        volume_id_of(claim),
        claimed_mib(claim),
        claim["spec"].get("storageClassName"),
    )
