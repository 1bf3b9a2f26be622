"""The driver of one KubeVirt cluster: a machine is a VirtualMachine, its claims and its Secret.

Whatever it makes carries the machine's UID, so that work done before a crash is found again. How a
machine is comes from watches; nothing here asks again and again.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from novacron.core.conditions import Condition
from novacron.core.driver import Accepted, Capability
from novacron.core.errors import Busy, Rejected
from novacron.core.host import HostFacts
from novacron.core.machine import (
    Hindrance,
    MachinePlan,
    MachineRef,
    Observed,
    Power,
    Resources,
)
from novacron.core.volume import Reclaim
from novacron.drivers.kubevirt.belongings import Belongings
from novacron.drivers.kubevirt.cluster import Cluster
from novacron.drivers.kubevirt.consoles import Consoles
from novacron.drivers.kubevirt.convert import template, virtual_machine
from novacron.drivers.kubevirt.errors import in_our_words, went_away
from novacron.drivers.kubevirt.facts import facts_of
from novacron.drivers.kubevirt.fetching import Fetching
from novacron.drivers.kubevirt.guest_data import GuestData, ReadSource
from novacron.drivers.kubevirt.imports import Imports, seen_imports
from novacron.drivers.kubevirt.look import PATIENCE, has_no_node, observed, storage_part
from novacron.drivers.kubevirt.migrations import Migrations
from novacron.drivers.kubevirt.missing import Missing, name_taken
from novacron.drivers.kubevirt.names import (
    CLAIMS,
    INSTANCES,
    MACHINES,
    RECLAIM,
    SUBRESOURCES,
    UID,
)
from novacron.drivers.kubevirt.networks import Attachments
from novacron.drivers.kubevirt.ownership import belongs_to, is_known, known_again
from novacron.drivers.kubevirt.plugging import Plugs, plugs_of
from novacron.drivers.kubevirt.removal import remove
from novacron.drivers.kubevirt.revision import revised
from novacron.drivers.kubevirt.snapshots import MachineSnapshots
from novacron.drivers.kubevirt.storage import Claims, claimed_volumes
from novacron.drivers.kubevirt.volume_keeping import VolumeKeeper
from novacron.runtime.client import Request
from novacron.runtime.errors import AlreadyExists, Conflict, NotFound

__all__ = ["KubeVirtDriver"]

Object = dict[str, Any]

TRIES = 5
# How KubeVirt refuses to stop a guest that has ended meanwhile.
NOT_RUNNING = "is not running"
A_MOMENT = 0.05


@dataclass(slots=True)
class KubeVirtDriver(Migrations, MachineSnapshots, Consoles, VolumeKeeper):
    """Satisfies ``Driver``, ``Inventory``, ``Watching``, ``Identified``, ``VolumeKeeping``.

    And what it inherits.

    ``owned`` says that machines are declared in this very cluster, so that what is made for them
    can refer to their declarations.
    """

    cluster: Cluster
    read_source: ReadSource
    owned: bool = True
    capabilities: frozenset[Capability] = frozenset(
        {
            Capability.CONSOLE,
            Capability.INVENTORY,
            Capability.RESIZE_RUNNING,
            Capability.SNAPSHOTS,
            Capability.VOLUMES,
        }
    )
    _claims: Claims = field(init=False)
    _attachments: Attachments = field(init=False)
    _imports: Imports = field(init=False)
    _guest_data: GuestData = field(init=False)

    def __post_init__(self) -> None:
        self._claims = Claims(self.cluster, self.owned)
        fetching = Fetching(self.cluster, self.owned, self.read_source)
        self._imports = Imports(self.cluster, self.owned, self._claims.class_of, fetching)
        self._attachments = Attachments(self.cluster, self.owned)
        self._guest_data = GuestData(self.cluster, self.owned, self.read_source)

    def on_change(self, tell: Callable[[str], None]) -> None:
        """Have the UID of every machine told that changed in any way."""
        self.cluster.on_change(tell)

    async def observe(self, ref: MachineRef) -> Observed | None:
        """Tell how the machine is; None means it does not exist."""
        await self.cluster.ready()
        return self._seen(self.cluster.of(ref.uid))

    async def identity(self) -> str:
        """Return what tells a cluster that is reached by a Secret; our own is always the same."""
        return "" if self.owned else await self.cluster.identity()

    async def is_still(self, identity: str) -> bool:
        """Say whether the Secret still leads to this cluster."""
        if await self.identity() in ("", identity):
            return True
        await self.cluster.again()
        return False

    async def machines(self, host: str) -> Sequence[Observed]:
        """Tell of every machine in the cluster that carries an owner's UID."""
        await self.cluster.reached(host)
        found = (self._seen(self.cluster.of(uid)) for uid in self.cluster.uids())
        return [each for each in found if each is not None]

    async def create(self, plan: MachinePlan) -> Accepted:
        """Make the machine; what the cluster lacks for it is said in what is seen of it."""
        await self.cluster.ready()
        with self._in_our_words():
            try:
                async with self._attachments.in_use(plan):
                    claims = await self._foundations(plan)
                    made = await self._machine(plan)
            except Missing as lack:
                return Accepted(seen=_unmade(plan, self.cluster.of(plan.ref.uid), lack))
        instance = self.cluster.of(plan.ref.uid).instance
        return Accepted(seen=self._seen(Belongings(made, instance, claims)))

    async def resize(self, plan: MachinePlan) -> Accepted:
        """Give the machine what the plan says; KubeVirt knows what a running guest can take."""
        await self.cluster.ready()
        has = self.cluster.of(plan.ref.uid)
        if (vm := has.machine) is None:
            raise went_away(plan.ref.name)
        if plan.volumes is None:
            plan = replace(plan, volumes=claimed_volumes(has))
        with self._in_our_words(plan.ref.name):
            try:
                claims = await self._foundations(plan)
            except Missing as lack:
                raise Rejected(lack.message, reason=lack.reason, again=lack.again) from lack
            has = self.cluster.of(plan.ref.uid)
            instance = has.instance
            plugs = plugs_of(vm, instance, template(plan)["spec"], self.cluster.settings)
            vm = await self._written(vm, instance, plan, plugs)
            await plugs.order(self.cluster.client, plan.ref)
            if instance is not None and has_no_node(instance):
                # As it is it would wait for ever; KubeVirt makes one that is as it is to be.
                await remove(self.cluster.client, INSTANCES, instance)
            await self._imports.eject(plan, replace(has, machine=vm))
        return Accepted(seen=self._seen(replace(has, machine=vm, claims=claims)))

    async def _written(
        self, vm: Object, instance: Object | None, plan: MachinePlan, plugs: Plugs
    ) -> Object:
        """Have a VirtualMachine say what the plan does; KubeVirt writes into it all the time."""
        ref = plan.ref
        for attempt in range(TRIES):
            wanted = revised(vm, instance, plan, plugs, owned=self.owned)
            if wanted == vm:
                return vm
            try:
                changed = await self.cluster.client.replace(MACHINES, wanted)
            except Conflict:
                await asyncio.sleep(attempt * A_MOMENT)
                vm = await self.cluster.client.get(MACHINES, ref.name, ref.namespace)
                if not belongs_to(vm, ref.uid):
                    break
            else:
                self.cluster.machines.heard(changed)
                return changed
        raise Busy(f"VirtualMachine {ref.name} is being changed by somebody else")

    async def set_power(self, ref: MachineRef, want: Power, *, force: bool = False) -> Accepted:
        """Start or stop the machine; a forced stop asks the guest nothing."""
        await self.cluster.ready()
        has = self.cluster.of(ref.uid)
        if has.machine is None:
            raise went_away(ref.name)
        strategy = "Always" if want is Power.ON else "Halted"
        with self._in_our_words(ref.name):
            if has.machine["spec"].get("runStrategy") != strategy:
                patch = {"spec": {"runStrategy": strategy, "running": None}}
                vm = await self.cluster.client.patch(MACHINES, ref.name, patch, ref.namespace)
                self.cluster.machines.heard(vm)
            if force and want is Power.OFF and has.instance is not None:
                await self._unplug(ref)
        return Accepted(seen=self._seen(self.cluster.of(ref.uid)))

    async def delete(self, ref: MachineRef) -> Accepted:
        """Remove the machine first, then its first disk, its Secret and what only it used."""
        await self.cluster.ready()
        self.cluster.waits(ref.uid, waits=False)
        has = self.cluster.of(ref.uid)
        with self._in_our_words():
            await self.end_migrations(ref)
            if (vm := has.machine or await self._heard_of_again(ref)) is not None:
                await remove(self.cluster.client, MACHINES, vm)
                await self._look_again(ref)
            elif has.instance is not None:
                # It goes with its machine, unless that was deleted without it.
                await remove(self.cluster.client, INSTANCES, has.instance)
            await self.remove_snapshots(ref)
            await self._imports.remove(ref)
            # Kubernetes keeps them for as long as a guest has them.
            for claim in has.claims:
                if claim["metadata"]["labels"].get(RECLAIM) != Reclaim.RETAIN.value:
                    await remove(self.cluster.client, CLAIMS, claim)
            await self._guest_data.remove(ref)
            if vm is None and has.instance is None:
                await self._attachments.tidy(ref.namespace)
        return Accepted(seen=_leaving(self._seen(replace(has, machine=vm))))

    async def hosts(self) -> AsyncIterator[HostFacts]:
        """Tell of the cluster as one host: what its nodes have together."""
        await self.cluster.ready()
        with self._in_our_words():
            yield await facts_of(self.cluster)

    async def close(self) -> None:
        """Stop following the cluster."""
        await self.cluster.close()

    def _in_our_words(self, machine: str | None = None) -> AbstractContextManager[None]:
        return in_our_words(machine, self.cluster.refused)

    def _seen(self, has: Belongings) -> Observed | None:
        return observed(has, self.cluster.settings, self.cluster.node)

    async def _foundations(self, plan: MachinePlan) -> tuple[Object, ...]:
        """Have all that a VirtualMachine refers to; return its claims."""
        self.cluster.waits(plan.ref.uid, waits=True)
        self.cluster.settings.require_machine_type(plan.hardware.machine_type)
        self.cluster.settings.require_encryption(wanted=plan.only_encrypted)
        await self._attachments.ensure(plan)
        await self._imports.ensure(plan, self.cluster.of(plan.ref.uid))
        has = self.cluster.of(plan.ref.uid)
        claims = await self._claims.ensure(plan, has)
        await self._guest_data.ensure(plan, made=has.machine is not None)
        self.cluster.waits(plan.ref.uid, waits=False)
        return claims

    async def _machine(self, plan: MachinePlan) -> Object:
        body = virtual_machine(plan, owned=self.owned)
        try:
            made = await self.cluster.client.create(MACHINES, body)
        except AlreadyExists:
            ref = plan.ref
            made = await self.cluster.client.get(MACHINES, ref.name, ref.namespace)
            if not belongs_to(made, ref.uid):
                remedy = "give the machine another name"
                raise name_taken(MACHINES.kind, ref.name, "VirtualMachineReady", remedy) from None
            if not is_known(made, ref.uid):
                patch = known_again(body)
                made = await self.cluster.client.patch(MACHINES, ref.name, patch, ref.namespace)
        self.cluster.machines.cache.seen(made)
        return made

    async def _look_again(self, ref: MachineRef) -> None:
        """Know at once that a VirtualMachine was told to go, before the cluster tells."""
        with suppress(NotFound):
            found = await self.cluster.client.get(MACHINES, ref.name, ref.namespace)
            if is_known(found, ref.uid):
                self.cluster.machines.heard(found)

    async def _heard_of_again(self, ref: MachineRef) -> Object | None:
        """Return a VirtualMachine that had lost the label by which the cluster tells of it."""
        try:
            found = await self.cluster.client.get(MACHINES, ref.name, ref.namespace)
            if not belongs_to(found, ref.uid):
                return None
            labels = {"metadata": {"labels": {UID: ref.uid}}}
            found = await self.cluster.client.patch(MACHINES, ref.name, labels, ref.namespace)
        except NotFound:
            return None
        self.cluster.machines.cache.seen(found)
        return found

    async def _unplug(self, ref: MachineRef) -> None:
        path = SUBRESOURCES.path(ref.namespace, ref.name, "stop")
        body = orjson.dumps({"gracePeriod": 0})
        try:
            await self.cluster.client.send(Request("update", "PUT", path, {}, body))
        except Conflict as error:
            if NOT_RUNNING not in error.message:
                raise  # otherwise it stopped by itself a moment ago


def _unmade(plan: MachinePlan, has: Belongings, lack: Missing) -> Observed:
    """Return what is to be said of a machine for which the cluster lacks something."""
    parts: dict[str, Condition] = {}
    if has.claims:
        parts["StorageReady"] = storage_part(has.claims)
    parts[lack.part.type] = lack.part
    return Observed(
        uid=plan.ref.uid,
        vm_id="",
        power=Power.OFF,
        resources=Resources(),
        changing="create",
        due=lack.again,
        parts=tuple(parts.values()),
        imports=seen_imports(has),
        hindered=Hindrance(lack.reason, lack.message),
    )


def _leaving(seen: Observed | None) -> Observed | None:
    """Return what is seen of a machine that was told to go."""
    if seen is None:
        return None
    return replace(seen, changing="delete", due=PATIENCE, abandoned=False, hindered=None)
