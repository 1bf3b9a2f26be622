"""Snapshots of machines by KubeVirt's own snapshot API: taken, gone back to, removed.

A snapshot holds disks and no memory. Going back needs the machine off, so it is stopped first; the
claims keep their names, and whoever ordered it starts the machine again.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from novacron.core.driver import Accepted
from novacron.core.errors import Busy, Rejected
from novacron.core.machine import MachineRef
from novacron.core.quantity import parse_quantity
from novacron.core.snapshot import RestoreOrder, Snapshot, SnapshotOrder
from novacron.drivers.kubevirt.belongings import Belongings
from novacron.drivers.kubevirt.cluster import Cluster
from novacron.drivers.kubevirt.errors import in_our_words
from novacron.drivers.kubevirt.names import (
    DISK,
    MACHINES,
    REQUEST,
    RESTORES,
    SNAPSHOT,
    SNAPSHOTS,
    UID,
)
from novacron.drivers.kubevirt.removal import remove
from novacron.drivers.kubevirt.view import by_name, condition, template_of
from novacron.runtime.cache import Cache
from novacron.runtime.errors import AlreadyExists
from novacron.runtime.resource import Resource

__all__ = ["MachineSnapshots", "is_able"]

Object = dict[str, Any]

# The cluster tells when something is done; this is for what may be missed all the same.
LOOK_AGAIN = timedelta(seconds=60)
SOON = timedelta(seconds=1)
AT_REST = "GuestAgent"


class MachineSnapshots:
    """Satisfies ``core.snapshot.Snapshots``."""

    __slots__ = ()
    cluster: Cluster

    async def snapshots(self, ref: MachineRef) -> Sequence[Snapshot]:
        """Tell of every whole snapshot of a machine that we took."""
        await self.cluster.ready()
        restores = list(self.cluster.restores.objects(ref.uid))
        whole = [each for each in self._taken(ref) if (each.get("status") or {}).get("readyToUse")]
        return [_snapshot(each, restores, self._claimed(ref)) for each in whole]

    async def take_snapshot(self, ref: MachineRef, order: SnapshotOrder) -> Accepted:
        """Take one; the same name twice makes one."""
        await self.cluster.ready()
        found = next((each for each in self._taken(ref) if _name(each) == order.name), None)
        if found is not None:
            _require_well(found, f"snapshot {order.name}")
            return Accepted(LOOK_AGAIN)
        has = self.cluster.of(ref.uid)
        if order.memory and has.instance is not None:
            raise Rejected(
                "snapshots of KubeVirt hold disks and no memory: leave memory out",
                reason="MemoryUnsupported",
            )
        if not is_able(has):
            return Accepted(SOON)
        spec = {"source": {"apiGroup": MACHINES.group, "kind": MACHINES.kind, "name": ref.name}}
        labels = {UID: ref.uid, SNAPSHOT: order.name}
        await self._make(ref, SNAPSHOTS, f"{ref.name}-{order.name}", labels, spec)
        return Accepted(LOOK_AGAIN)

    async def restore_snapshot(self, ref: MachineRef, order: RestoreOrder) -> Accepted:
        """Stop the machine, and once it is off bring its disks back; once for each request."""
        await self.cluster.ready()
        found = next((each for each in self._taken(ref) if _name(each) == order.snapshot), None)
        if found is None:
            raise Rejected(f"there is no snapshot {order.snapshot}", reason="SnapshotMissing")
        asked = next(
            (each for each in self.cluster.restores.objects(ref.uid) if _is_for(each, order)), None
        )
        if asked is not None:
            _require_well(asked, f"the way back to snapshot {order.snapshot}")
            return Accepted(LOOK_AGAIN)
        has = self.cluster.of(ref.uid)
        if not await self._is_off(ref, has):
            return Accepted(LOOK_AGAIN)
        await self._go_back(ref, order, found)
        return Accepted(LOOK_AGAIN)

    async def remove_snapshot(self, ref: MachineRef, name: str) -> Accepted:
        """Remove one. An absent one is success."""
        await self.cluster.ready()
        for each in self._taken(ref):
            if _name(each) == name:
                await self._remove(SNAPSHOTS, each)
        return Accepted(LOOK_AGAIN)

    async def remove_snapshots(self, ref: MachineRef) -> None:
        """Remove all that was ever asked for about a machine's snapshots."""
        for each in list(self.cluster.restores.objects(ref.uid)):
            await self._remove(RESTORES, each)
        for each in self._taken(ref):
            await self._remove(SNAPSHOTS, each)

    def _taken(self, ref: MachineRef) -> list[Object]:
        """Return what was asked for and is not on its way out again."""
        found = self.cluster.snapshots.objects(ref.uid)
        return [each for each in found if "deletionTimestamp" not in each["metadata"]]

    def _claimed(self, ref: MachineRef) -> tuple[Object, ...]:
        return self.cluster.of(ref.uid).claims

    async def _is_off(self, ref: MachineRef, has: Belongings) -> bool:
        """Have the machine stop; say whether it has."""
        if has.machine is not None and has.machine["spec"].get("runStrategy") != "Halted":
            with in_our_words():
                patch = {"spec": {"runStrategy": "Halted", "running": None}}
                vm = await self.cluster.client.patch(MACHINES, ref.name, patch, ref.namespace)
            self.cluster.machines.heard(vm)
        return has.instance is None

    async def _go_back(self, ref: MachineRef, order: RestoreOrder, found: Object) -> None:
        spec = {
            "target": {"apiGroup": MACHINES.group, "kind": MACHINES.kind, "name": ref.name},
            "virtualMachineSnapshotName": found["metadata"]["name"],
            # The disks are made anew under their old names, with their old labels.
            "volumeRestorePolicy": "InPlace",
        }
        labels = {UID: ref.uid, SNAPSHOT: order.snapshot, REQUEST: _digest(order)}
        name, notes = f"{ref.name}-{_digest(order)}", {REQUEST: order.request}
        await self._make(ref, RESTORES, name, labels, spec, notes)

    async def _make(
        self,
        ref: MachineRef,
        kind: Resource,
        name: str,
        labels: dict[str, str],
        spec: Object,
        notes: dict[str, str] | None = None,
    ) -> None:
        metadata = {"name": name, "namespace": ref.namespace, "labels": labels}
        body = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": metadata | ({"annotations": notes} if notes else {}),
            "spec": spec,
        }
        with in_our_words():
            try:
                made = await self.cluster.client.create(kind, body)
            except AlreadyExists:
                raise Busy(f"{kind.kind} {name} was just made, or is still going") from None
        self._cache(kind).seen(made)

    async def _remove(self, kind: Resource, obj: Object) -> None:
        """Remove one; it counts no more, though the cluster may take a while to be rid of it."""
        with in_our_words():
            await remove(self.cluster.client, kind, obj)
        self._cache(kind).gone(obj)

    def _cache(self, kind: Resource) -> Cache:
        return (self.cluster.snapshots if kind is SNAPSHOTS else self.cluster.restores).cache


def is_able(has: Belongings) -> bool:
    """Refuse a snapshot that would lack a disk: KubeVirt would take it all the same.

    False as long as KubeVirt has not said of every disk whether it can be part of one.
    """
    told = by_name(((has.machine or {}).get("status") or {}).get("volumeSnapshotStatuses"))
    claimed = {claim["metadata"]["labels"].get(DISK) for claim in has.claims}
    ours = claimed & by_name(template_of(has.machine).get("volumes")).keys()
    unable = [
        f"{name} ({told[name].get('reason') or 'KubeVirt does not say why'})"
        for name in sorted(ours & told.keys())
        if not told[name].get("enabled")
    ]
    if unable:
        raise Rejected(
            f"no snapshot can be taken of disk {', '.join(unable)}: give its storage class a "
            "VolumeSnapshotClass of the same driver, or use another storage class",
            reason="VolumeCannotBeSnapshot",
        )
    return ours <= told.keys()


def _require_well(obj: Object, what: str) -> None:
    failure = condition(obj, "Failure")
    error = ((obj.get("status") or {}).get("error") or {}).get("message")
    if failure.get("status") == "True" or (obj.get("status") or {}).get("phase") == "Failed":
        why = failure.get("reason") or failure.get("message") or error or "it does not say why"
        raise Rejected(f"{what} failed in KubeVirt: {why}", reason="KubeVirtFailed")


def _snapshot(taken: Object, restores: Sequence[Object], claims: Sequence[Object]) -> Snapshot:
    status = taken["status"]
    done = [each for each in restores if _is_of(each, taken) and _complete(each)]
    last = max(done, key=lambda each: str(each["status"].get("restoreTime")), default=None)
    return Snapshot(
        name=_name(taken),
        created=datetime.fromisoformat(status["creationTime"]),
        size_bytes=sum(_bytes(claims)) or None,
        quiesced=AT_REST in (status.get("indications") or ()),
        restored=_request(last) if last else "",
    )


def _bytes(claims: Sequence[Object]) -> Iterator[int]:
    for claim in claims:
        yield int(parse_quantity(claim["spec"]["resources"]["requests"]["storage"]))


def _name(obj: Object) -> str:
    return str(obj["metadata"]["labels"].get(SNAPSHOT, ""))


def _is_of(restore: Object, snapshot: Object) -> bool:
    named = restore["spec"]["virtualMachineSnapshotName"]
    return bool(named == snapshot["metadata"]["name"])


def _complete(restore: Object) -> bool:
    return bool((restore.get("status") or {}).get("complete"))


def _is_for(restore: Object, order: RestoreOrder) -> bool:
    return bool(restore["metadata"]["labels"].get(REQUEST) == _digest(order))


def _request(restore: Object) -> str:
    return str((restore["metadata"].get("annotations") or {}).get(REQUEST, ""))


def _digest(order: RestoreOrder) -> str:
    """Return a word for a request that may be part of a name; the request itself is any text."""
    return sha256(f"{order.snapshot}\0{order.request}".encode()).hexdigest()[:16]
