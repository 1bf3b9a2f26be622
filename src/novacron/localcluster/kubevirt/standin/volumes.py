"""Volumes that are played: each claim of our classes gets one, which grows and goes with it."""

from dataclasses import dataclass
from datetime import timedelta

from novacron.localcluster.kubevirt.names import PROVISIONER
from novacron.localcluster.kubevirt.standin.quantity import amount
from novacron.localcluster.kubevirt.standin.wishes import failure, held
from novacron.localcluster.kubevirt.standin.world import CLAIMS, VOLUMES, World, vanish
from novacron.runtime.errors import AlreadyExists
from novacron.runtime.events import Events
from novacron.runtime.resource import Key, Object

__all__ = ["Claims", "Volumes"]

SELECTED_NODE = "volume.kubernetes.io/selected-node"
WAITING = "WaitForFirstConsumer"
BEFORE = {"pv.kubernetes.io/provisioned-by": PROVISIONER}


@dataclass(slots=True)
class Claims:
    """All claims of classes that are ours."""

    world: World
    events: Events

    async def reconcile(self, key: Key) -> timedelta | None:
        """Provide for one claim, or let its volume grow."""
        claim = self.world.claims.get(key)
        if claim is None or "deletionTimestamp" in claim["metadata"]:
            return None
        name = claim["spec"].get("storageClassName")
        storage = self.world.classes.get(Key("", name)) if name else None
        if storage is None or not _is_ours(storage):
            return None
        if held(claim) or held(storage):
            return None
        if message := failure([claim, storage]):
            self.events.warning(claim, "ProvisioningFailed", message)
        elif not claim["spec"].get("volumeName"):
            await self._provide(claim, storage)
        elif (claim.get("status") or {}).get("phase") == "Bound":
            await self._grow(claim)
        return None

    async def _provide(self, claim: Object, storage: Object) -> None:
        notes = claim["metadata"].get("annotations") or {}
        if storage.get("volumeBindingMode") == WAITING and SELECTED_NODE not in notes:
            return
        try:
            await self.world.client.create(VOLUMES, _volume(claim, storage))
        except AlreadyExists:
            return

    async def _grow(self, claim: Object) -> None:
        asked = claim["spec"]["resources"]["requests"]["storage"]
        has = (claim["status"].get("capacity") or {}).get("storage", "0")
        if amount(asked) <= amount(has):
            return
        capacity = {"capacity": {"storage": asked}}
        name, metadata = claim["spec"]["volumeName"], claim["metadata"]
        await self.world.client.patch(VOLUMES, name, {"spec": capacity})
        status = {"status": capacity | {"conditions": None}}
        where = metadata["namespace"]
        await self.world.client.patch(CLAIMS, metadata["name"], status, where, subresource="status")


@dataclass(slots=True)
class Volumes:
    """All volumes that were provided here."""

    world: World

    async def reconcile(self, key: Key) -> timedelta | None:
        """Take a volume away that nobody claims any more."""
        volume = self.world.volumes.get(key)
        if volume is None or "deletionTimestamp" in volume["metadata"]:
            return None
        ours = ((volume["spec"].get("csi") or {}).get("driver")) == PROVISIONER
        released = (volume.get("status") or {}).get("phase") == "Released"
        if ours and released and volume["spec"]["persistentVolumeReclaimPolicy"] == "Delete":
            await vanish(self.world.client, VOLUMES, volume)
        return None


def _is_ours(storage: Object) -> bool:
    """Say whether to provide for a class; ours has names below its own, which can do other things.

    KubeVirt knows by the name of a provisioner whether it takes snapshots.
    """
    provisioner = str(storage["provisioner"])
    return provisioner == PROVISIONER or provisioner.endswith(f".{PROVISIONER}")


def _volume(claim: Object, storage: Object) -> Object:
    metadata, spec = claim["metadata"], claim["spec"]
    name = f"pvc-{metadata['uid']}"
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": BEFORE},
        "spec": {
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "accessModes": spec["accessModes"],
            "volumeMode": spec.get("volumeMode", "Filesystem"),
            "storageClassName": storage["metadata"]["name"],
            "persistentVolumeReclaimPolicy": storage.get("reclaimPolicy", "Delete"),
            "csi": {"driver": PROVISIONER, "volumeHandle": name},
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": metadata["namespace"],
                "name": metadata["name"],
                "uid": metadata["uid"],
            },
        },
    }
