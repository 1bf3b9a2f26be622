"""Imports of images that are played: a DataVolume gets its claim, and is said to be filled."""

from dataclasses import dataclass
from datetime import timedelta

from novacron.localcluster.kubevirt.standin.wishes import failure, held
from novacron.localcluster.kubevirt.standin.world import CLAIMS, DATA_VOLUMES, World, now
from novacron.runtime.cache import Cache
from novacron.runtime.errors import AlreadyExists, NotFound
from novacron.runtime.resource import Key, Object

__all__ = ["Imports"]

# Where an import stands that is held.
HALFWAY = "42.00%"
SHARED = {"accessModes": ["ReadWriteMany"], "volumeMode": "Block"}


@dataclass(slots=True)
class Imports:
    """All DataVolumes."""

    world: World
    cache: Cache

    async def reconcile(self, key: Key) -> timedelta | None:
        """Say of one DataVolume what CDI would."""
        found = self.cache.get(key)
        if found is None or "deletionTimestamp" in found["metadata"]:
            return None
        claim = self.world.claims.get(key)
        if claim is None:
            await self._claim(found)
            status = _status(key.name, "Pending", "N/A")
        elif (claim.get("status") or {}).get("phase") != "Bound":
            status = _status(key.name, "Pending", "N/A")
        elif message := failure([found]):
            status = _status(key.name, "ImportInProgress", "N/A", "Error", message)
        elif held(found):
            status = _status(key.name, "ImportInProgress", HALFWAY)
        else:
            status = _status(key.name, "Succeeded", "100.0%", "Completed", "Import Complete")
        await self._say(found, status)
        return None

    async def _claim(self, found: Object) -> None:
        metadata, spec = found["metadata"], found["spec"]
        # With `storage` CDI chooses what is not said; with `pvc` it does not.
        asked = spec.get("pvc") or {**SHARED, **(spec.get("storage") or {})}
        owner = {
            "apiVersion": DATA_VOLUMES.api_version,
            "kind": DATA_VOLUMES.kind,
            "name": metadata["name"],
            "uid": metadata["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
        named = {"name": metadata["name"], "namespace": metadata["namespace"]}
        body = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {**named, "ownerReferences": [owner]},
            "spec": asked,
        }
        try:
            await self.world.client.create(CLAIMS, body)
        except AlreadyExists:
            return

    async def _say(self, found: Object, status: Object) -> None:
        before = found.get("status") or {}
        if _without_times(before) == _without_times(status):
            return
        name, where = found["metadata"]["name"], found["metadata"]["namespace"]
        body = {"status": status}
        try:
            await self.world.client.patch(DATA_VOLUMES, name, body, where, subresource="status")
        except NotFound:
            return


def _status(name: str, phase: str, progress: str, reason: str = "", message: str = "") -> Object:
    done, bound = phase == "Succeeded", phase != "Pending"
    runs = bound and not done and not reason
    conditions = [
        _condition("Ready", done),
        _condition("Bound", bound),
        _condition("Running", runs, reason, message),
    ]
    return {"claimName": name, "phase": phase, "progress": progress, "conditions": conditions}


def _condition(kind: str, holds: bool, reason: str = "", message: str = "") -> Object:  # noqa: FBT001
    said = {"type": kind, "status": str(holds), "reason": reason, "message": message}
    return said | {"lastTransitionTime": now(), "lastHeartbeatTime": now()}


def _without_times(status: Object) -> Object:
    told = [{k: v for k, v in each.items() if not k.endswith("Time")}
            for each in status.get("conditions") or ()]  # fmt: skip
    return status | {"conditions": told}
