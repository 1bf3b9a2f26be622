"""Machines that move between the nodes of a cluster: what was ordered, and how far it is."""

from datetime import datetime
from typing import Any

from novacron.core.machine import MachineRef
from novacron.core.move import Move, MoveReport, MoveResult
from novacron.drivers.kubevirt.cluster import Cluster
from novacron.drivers.kubevirt.errors import in_our_words
from novacron.drivers.kubevirt.names import MIGRATIONS, MOVE, UID
from novacron.drivers.kubevirt.removal import remove
from novacron.runtime.errors import AlreadyExists

__all__ = ["Migrations", "moved"]

Object = dict[str, Any]

HOSTNAME = "kubernetes.io/hostname"
ENDED = {"Succeeded": MoveResult.SUCCEEDED, "Failed": MoveResult.FAILED}


class Migrations:
    """Satisfies ``core.relocation.Relocation``."""

    __slots__ = ()
    cluster: Cluster

    async def relocate(self, ref: MachineRef, order: Move) -> None:
        """Ask KubeVirt to move the machine; the order's id is in the name, so it asks once."""
        await self.cluster.ready()
        spec: Object = {"vmiName": ref.name}
        if order.target:
            spec["addedNodeSelector"] = {HOSTNAME: order.target}
        body = {
            "apiVersion": MIGRATIONS.api_version,
            "kind": MIGRATIONS.kind,
            "metadata": {
                "name": f"{ref.name}-{order.id}",
                "namespace": ref.namespace,
                "labels": {UID: ref.uid, MOVE: order.id},
            },
            "spec": spec,
        }
        with in_our_words():
            try:
                made = await self.cluster.client.create(MIGRATIONS, body)
            except AlreadyExists:
                return
        self.cluster.moves.cache.seen(made)

    async def relocation(self, ref: MachineRef, order: Move) -> MoveReport | None:
        """Tell how far an order is, or how it ended."""
        await self.cluster.ready()
        found = self._ordered(ref, order)
        if found is None:
            return None
        instance = self.cluster.of(ref.uid).instance or {}
        state = (instance.get("status") or {}).get("migrationState") or {}
        if state.get("migrationUid") != found["metadata"]["uid"]:
            state = (found.get("status") or {}).get("migrationState") or {}
        return _report(order, found, state)

    async def cancel_relocation(self, ref: MachineRef, order: Move) -> None:
        """Have the machine stay: KubeVirt ends a migration whose object is deleted."""
        await self.cluster.ready()
        if (found := self._ordered(ref, order)) is not None:
            await self._end(found)

    async def end_migrations(self, ref: MachineRef) -> None:
        """Remove every order about a machine."""
        for each in list(self.cluster.moves.objects(ref.uid)):
            await self._end(each)

    def _ordered(self, ref: MachineRef, order: Move) -> Object | None:
        found = self.cluster.moves.objects(ref.uid)
        return next((m for m in found if m["metadata"]["labels"].get(MOVE) == order.id), None)

    async def _end(self, migration: Object) -> None:
        with in_our_words():
            await remove(self.cluster.client, MIGRATIONS, migration)


def moved(instance: Object | None) -> MoveReport | None:
    """Return the move that an instance is in, or was last in, whoever ordered it."""
    state = ((instance or {}).get("status") or {}).get("migrationState") or {}
    if not state.get("startTimestamp"):
        return None
    result = None
    if state.get("completed"):
        result = MoveResult.FAILED if state.get("failed") else MoveResult.SUCCEEDED
    return MoveReport(
        id=str(state.get("migrationUid", "")),
        source=state.get("sourceNode"),
        target=state.get("targetNode"),
        started=_time(state.get("startTimestamp")),
        ended=_time(state.get("endTimestamp")),
        result=result,
        reason="MigrationFailed" if state.get("failed") else "",
        message=str(state.get("failureReason") or ""),
    )


def _report(order: Move, migration: Object, state: Object) -> MoveReport:
    phase = (migration.get("status") or {}).get("phase", "")
    result = ENDED.get(phase)
    if result is MoveResult.FAILED and state.get("abortRequested"):
        result = MoveResult.CANCELLED
    begun = state.get("startTimestamp") or migration["metadata"]["creationTimestamp"]
    failed = result is MoveResult.FAILED
    return MoveReport(
        id=order.id,
        source=state.get("sourceNode") or order.source or None,
        target=state.get("targetNode") or order.target or None,
        started=_time(begun),
        ended=_time(state.get("endTimestamp")) if result else None,
        result=result,
        reason="MigrationFailed" if failed else phase,
        message=_why(migration, state) if failed else "",
    )


def _why(migration: Object, state: Object) -> str:
    told = [str(state.get("failureReason") or "")]
    conditions = (migration.get("status") or {}).get("conditions") or ()
    told += [str(each.get("message") or "") for each in conditions]
    return next(filter(None, told), "KubeVirt does not say why")


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
