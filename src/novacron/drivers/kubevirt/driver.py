"""The driver of one KubeVirt cluster: a machine is a VirtualMachine, its claims and its Secret.

Whatever it makes carries the machine's UID, so that work done before a crash is found again. How a
machine is comes from watches; nothing here asks again and again.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from novacron.core.conditions import Condition
from novacron.core.driver import Accepted, Capability
from novacron.core.errors import Rejected, Unreachable
from novacron.core.host import HostFacts
from novacron.core.machine import (
    Hindrance,
    MachinePlan,
    MachineRef,
    Observed,
    Power,
    Resources,
)
from novacron.core.quantity import mib
from novacron.core.volume import KeptVolume
from novacron.drivers.kubevirt.cluster import Belongings, Cluster
from novacron.drivers.kubevirt.convert import template, virtual_machine
from novacron.drivers.kubevirt.disks import volume_id_of
from novacron.drivers.kubevirt.errors import in_our_words, went_away
from novacron.drivers.kubevirt.facts import facts_of
from novacron.drivers.kubevirt.guest_data import GuestData, ReadSource
from novacron.drivers.kubevirt.look import (
    PATIENCE,
    has_no_node,
    observed,
    storage_part,
)
from novacron.drivers.kubevirt.missing import Missing, name_taken
from novacron.drivers.kubevirt.names import (
    APPLIED,
    CLAIMS,
    DISK,
    INSTANCES,
    MACHINES,
    RECIPE,
    RECLAIM,
    SUBRESOURCES,
    UID,
)
from novacron.drivers.kubevirt.networks import Attachments
from novacron.drivers.kubevirt.ownership import belongs_to, is_known, known_again
from novacron.drivers.kubevirt.plugging import Plugs, joined, plugs_of
from novacron.drivers.kubevirt.storage import Claims, claimed_volumes
from novacron.runtime.client import Request
from novacron.runtime.errors import AlreadyExists, NotFound
from novacron.runtime.resource import Resource

__all__ = ["KubeVirtDriver"]

Object = dict[str, Any]

RETAIN = "Retain"


@dataclass(slots=True)
class KubeVirtDriver:
    """Satisfies ``Driver``, ``Inventory``, ``Watching``, ``Identified`` and ``VolumeKeeping``.

    ``owned`` says that machines are declared in this very cluster, so that what is made for them
    can refer to their declarations.
    """

    cluster: Cluster
    read_source: ReadSource
    owned: bool = True
    capabilities: frozenset[Capability] = frozenset(
        {Capability.INVENTORY, Capability.RESIZE_RUNNING, Capability.VOLUMES}
    )
    _claims: Claims = field(init=False)
    _attachments: Attachments = field(init=False)
    _guest_data: GuestData = field(init=False)

    def __post_init__(self) -> None:
        self._claims = Claims(self.cluster, self.owned)
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
        await self._reached(host)
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
            instance = self.cluster.of(plan.ref.uid).instance
            plugs = plugs_of(vm, instance, template(plan)["spec"], self.cluster.settings)
            vm = await self._written(vm, _changed(vm, instance, plan, plugs, owned=self.owned))
            await plugs.order(self.cluster.client, plan.ref)
            if instance is not None and has_no_node(instance):
                # As it is it would wait for ever; KubeVirt makes one that is as it is to be.
                await self._remove(INSTANCES, instance)
        return Accepted(seen=self._seen(Belongings(vm, instance, claims)))

    async def _written(self, vm: Object, wanted: Object) -> Object:
        if wanted == vm:
            return vm
        changed = await self.cluster.client.replace(MACHINES, wanted)
        self.cluster.machines.cache.seen(changed)
        return changed

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
                self.cluster.machines.cache.seen(vm)
            if force and want is Power.OFF and has.instance is not None:
                await self._unplug(ref)
        return Accepted(seen=self._seen(self.cluster.of(ref.uid)))

    async def delete(self, ref: MachineRef) -> Accepted:
        """Remove the machine first, then its first disk, its Secret and what only it used."""
        await self.cluster.ready()
        self.cluster.waits(ref.uid, waits=False)
        has = self.cluster.of(ref.uid)
        with self._in_our_words():
            if (vm := has.machine or await self._heard_of_again(ref)) is not None:
                await self._remove(MACHINES, vm)
                return Accepted(seen=_leaving(self._seen(replace(has, machine=vm))))
            if has.instance is not None:
                # It goes with its machine, unless that was deleted without it.
                await self._remove(INSTANCES, has.instance)
                return Accepted(seen=_leaving(self._seen(has)))
            await self._guest_data.remove(ref)
            for claim in has.claims:
                if claim["metadata"]["labels"].get(RECLAIM) != RETAIN:
                    await self._remove(CLAIMS, claim)
            await self._attachments.tidy(ref.namespace)
        return Accepted()

    async def kept_volumes(self, host: str) -> Sequence[KeptVolume]:
        """Tell of every volume whose machine is gone."""
        await self._reached(host)
        return [
            _kept(claim)
            for claim in self.cluster.claims.cache.objects()
            if claim["metadata"]["labels"][UID] not in self.cluster.machines.of
            and claim["metadata"]["labels"].get(RECLAIM) == RETAIN
        ]

    async def reclaim(self, ref: MachineRef, volumes: Iterable[str]) -> None:
        """Delete volumes that were made for a machine which is gone."""
        await self.cluster.ready()
        doomed = set(volumes)
        with self._in_our_words():
            for claim in self.cluster.of(ref.uid).claims:
                if claim["metadata"]["labels"].get(DISK) in doomed:
                    await self._remove(CLAIMS, claim)

    async def delete_volume(self, host: str, namespace: str, volume: str) -> None:
        """Delete one volume by its id."""
        await self._reached(host)
        for claim in self.cluster.claims.cache.objects():
            if (claim["metadata"]["namespace"], volume_id_of(claim)) != (namespace, volume):
                continue
            if claim["metadata"]["labels"][UID] in self.cluster.machines.of:
                raise Rejected(
                    f"volume {volume} is a machine's: take it off that machine first",
                    reason="VolumeInUse",
                )
            with self._in_our_words():
                await self._remove(CLAIMS, claim)
            return
        raise Rejected(
            f"there is no volume {volume} of namespace {namespace} on host {host}",
            reason="VolumeMissing",
        )

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
        return observed(has, self.cluster.settings)

    async def _reached(self, host: str) -> None:
        """Be connected to the cluster that is asked for."""
        if host != self.cluster.name:
            raise Unreachable(f"this is the driver of {self.cluster.name}, not of {host}")
        await self.cluster.ready()

    async def _foundations(self, plan: MachinePlan) -> tuple[Object, ...]:
        """Have all that a VirtualMachine refers to; return its claims."""
        self.cluster.waits(plan.ref.uid, waits=True)
        self.cluster.settings.require_machine_type(plan.hardware.machine_type)
        await self._attachments.ensure(plan)
        claims = await self._claims.ensure(plan, self.cluster.of(plan.ref.uid))
        await self._guest_data.ensure(plan)
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
        await self.cluster.client.send(Request("update", "PUT", path, {}, body))

    async def _remove(self, resource: Resource, obj: Object) -> None:
        metadata = obj["metadata"]
        if "deletionTimestamp" in metadata:
            return
        try:
            await self.cluster.client.delete(
                resource, metadata["name"], metadata["namespace"], uid=metadata["uid"]
            )
        except NotFound:
            return


def _changed(
    vm: Object, instance: Object | None, plan: MachinePlan, plugs: Plugs, *, owned: bool
) -> Object:
    """Return the VirtualMachine as it is to be; what others added beside our part stays."""
    wanted = virtual_machine(plan, owned=owned)
    kept = vm["spec"]["template"]
    asked = wanted["spec"]["template"]
    labels = {**(kept["metadata"].get("labels") or {}), **asked["metadata"]["labels"]}
    spec = joined(vm, instance, asked["spec"], plugs)
    for name in ("architecture", "evictionStrategy", "terminationGracePeriodSeconds"):
        if name in kept["spec"]:
            spec[name] = kept["spec"][name]
    metadata = vm["metadata"]
    annotations = {
        **(metadata.get("annotations") or {}),
        **{name: wanted["metadata"]["annotations"][name] for name in (RECIPE, APPLIED)},
    }
    return {
        **vm,
        "metadata": {**metadata, "annotations": annotations, **_marked_again(metadata, wanted)},
        "spec": {
            **vm["spec"],
            "template": {"metadata": {**kept["metadata"], "labels": labels}, "spec": spec},
        },
    }


def _marked_again(metadata: Object, wanted: Object) -> Object:
    """Return the labels with ours in place, and our owner where somebody took that off."""
    labels = {**(metadata.get("labels") or {}), **wanted["metadata"]["labels"]}
    owners = metadata.get("ownerReferences") or wanted["metadata"].get("ownerReferences")
    return {"labels": labels} | ({"ownerReferences": owners} if owners else {})


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
        hindered=Hindrance(lack.reason, lack.message),
    )


def _leaving(seen: Observed | None) -> Observed | None:
    """Return what is seen of a machine that was told to go."""
    if seen is None:
        return None
    return replace(seen, changing="delete", due=PATIENCE, abandoned=False, hindered=None)


def _kept(claim: Object) -> KeptVolume:
    return KeptVolume(
        claim["metadata"]["namespace"],
        volume_id_of(claim),
        mib(claim["spec"]["resources"]["requests"]["storage"]),
        claim["spec"].get("storageClassName"),
    )
