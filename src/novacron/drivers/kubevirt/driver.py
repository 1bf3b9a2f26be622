"""The driver of one KubeVirt cluster: a machine is a VirtualMachine, its claims and its Secret.

Whatever it makes carries the machine's UID, so that work done before a crash is found again. How a
machine is comes from watches; nothing here asks again and again.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from novacron.core.conditions import Condition
from novacron.core.driver import Accepted, Capability
from novacron.core.errors import Rejected
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
from novacron.drivers.kubevirt.consoles import Consoles
from novacron.drivers.kubevirt.convert import template, virtual_machine
from novacron.drivers.kubevirt.errors import in_our_words
from novacron.drivers.kubevirt.facts import facts_of
from novacron.drivers.kubevirt.guest_data import GuestData, ReadSource
from novacron.drivers.kubevirt.imports import Imports, seen_imports
from novacron.drivers.kubevirt.look import PATIENCE, observed, storage_part
from novacron.drivers.kubevirt.migrations import Migrations
from novacron.drivers.kubevirt.missing import Missing
from novacron.drivers.kubevirt.names import (
    APPLIED,
    CLAIMS,
    MACHINES,
    RECIPE,
    RECLAIM,
    SUBRESOURCES,
    UID,
    VOLUME,
)
from novacron.drivers.kubevirt.networks import Attachments
from novacron.drivers.kubevirt.plugging import Plugs, joined, plugs_of
from novacron.drivers.kubevirt.snapshots import MachineSnapshots
from novacron.drivers.kubevirt.storage import Claims
from novacron.runtime.client import Request
from novacron.runtime.errors import AlreadyExists, NotFound

__all__ = ["KubeVirtDriver"]

Object = dict[str, Any]

RETAIN = "Retain"


@dataclass(slots=True)
class KubeVirtDriver(Migrations, MachineSnapshots, Consoles):
    """Satisfies ``Driver``, ``Inventory``, ``Watching``, ``VolumeKeeping``, and what it inherits.

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
        self._imports = Imports(self.cluster, self.owned, self._claims.class_of)
        self._attachments = Attachments(self.cluster, self.owned)
        self._guest_data = GuestData(self.cluster, self.owned, self.read_source)

    def on_change(self, tell: Callable[[str], None]) -> None:
        """Have the UID of every machine told that changed in any way."""
        self.cluster.on_change(tell)

    async def observe(self, ref: MachineRef) -> Observed | None:
        """Tell how the machine is; None means it does not exist."""
        await self.cluster.ready()
        return self._seen(self.cluster.of(ref.uid))

    async def machines(self, host: str) -> Sequence[Observed]:
        """Tell of every machine in the cluster that carries an owner's UID."""
        del host
        await self.cluster.ready()
        found = (self._seen(self.cluster.of(uid)) for uid in self.cluster.uids())
        return [each for each in found if each is not None]

    async def create(self, plan: MachinePlan) -> Accepted:
        """Make the machine; what the cluster lacks for it is said in what is seen of it."""
        await self.cluster.ready()
        self.cluster.settings.require_machine_type(plan.hardware.machine_type)
        with in_our_words():
            try:
                claims = await self._foundations(plan)
            except Missing as lack:
                self.cluster.waits(plan.ref.uid, waits=True)
                return Accepted(seen=_unmade(plan, self.cluster.of(plan.ref.uid), lack))
            self.cluster.waits(plan.ref.uid, waits=False)
            made = await self._machine(plan)
        return Accepted(seen=self._seen(Belongings(made, None, claims)))

    async def resize(self, plan: MachinePlan) -> Accepted:
        """Give the machine what the plan says; KubeVirt knows what a running guest can take."""
        await self.cluster.ready()
        vm = self.cluster.of(plan.ref.uid).machine
        if vm is None:
            return Accepted()
        self.cluster.settings.require_machine_type(plan.hardware.machine_type)
        with in_our_words():
            try:
                claims = await self._foundations(plan)
            except Missing as lack:
                raise Rejected(lack.message, reason=lack.reason, again=PATIENCE) from lack
            has = self.cluster.of(plan.ref.uid)
            instance = has.instance
            plugs = plugs_of(vm, instance, template(plan)["spec"], self.cluster.settings)
            body = _changed(vm, instance, plan, plugs)
            if body != vm:
                vm = await self.cluster.client.replace(MACHINES, body)
                self.cluster.machines.cache.seen(vm)
            await plugs.order(self.cluster.client, plan.ref)
            await self._imports.eject(plan, replace(has, machine=vm))
        return Accepted(seen=self._seen(replace(has, machine=vm, claims=claims)))

    async def set_power(self, ref: MachineRef, want: Power, *, force: bool = False) -> Accepted:
        """Start or stop the machine; a forced stop asks the guest nothing."""
        await self.cluster.ready()
        has = self.cluster.of(ref.uid)
        if has.machine is None:
            return Accepted()
        strategy = "Always" if want is Power.ON else "Halted"
        with in_our_words():
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
        has = self.cluster.of(ref.uid)
        with in_our_words():
            if has.machine is not None:
                await self._remove_machine(ref, has.machine)
                return Accepted(seen=_leaving(self._seen(has)))
            if has.instance is not None:
                return Accepted(seen=self._seen(has))
            await self.end_migrations(ref)
            await self.remove_snapshots(ref)
            await self._imports.remove(ref)
            await self._guest_data.remove(ref)
            for claim in has.claims:
                if claim["metadata"]["labels"].get(RECLAIM) != RETAIN:
                    await self._remove_claim(claim)
        return Accepted()

    async def kept_volumes(self, host: str) -> Sequence[KeptVolume]:
        """Tell of every volume whose machine is gone."""
        del host
        await self.cluster.ready()
        return [
            _kept(claim)
            for claim in self.cluster.claims.cache.objects()
            if claim["metadata"]["labels"][UID] not in self.cluster.machines.of
            and claim["metadata"]["labels"].get(RECLAIM) == RETAIN
        ]

    async def reclaim(self, ref: MachineRef, volumes: Iterable[str]) -> None:
        """Delete volumes that were made for a machine which is gone."""
        del volumes  # those that are to go say so themselves, and went with the machine
        await self.cluster.ready()
        with in_our_words():
            for claim in self.cluster.of(ref.uid).claims:
                if claim["metadata"]["labels"].get(RECLAIM) != RETAIN:
                    await self._remove_claim(claim)

    async def delete_volume(self, host: str, namespace: str, volume: str) -> None:
        """Delete one volume by its id."""
        await self.cluster.ready()
        for claim in self.cluster.claims.cache.objects():
            if (claim["metadata"]["namespace"], _volume_id(claim)) != (namespace, volume):
                continue
            if claim["metadata"]["labels"][UID] in self.cluster.machines.of:
                raise Rejected(
                    f"volume {volume} is a machine's: take it off that machine first",
                    reason="VolumeInUse",
                )
            with in_our_words():
                await self._remove_claim(claim)
            return
        raise Rejected(
            f"there is no volume {volume} of namespace {namespace} on host {host}",
            reason="VolumeMissing",
        )

    async def hosts(self) -> AsyncIterator[HostFacts]:
        """Tell of the cluster as one host: what its nodes have together."""
        with in_our_words():
            yield await facts_of(self.cluster)

    async def close(self) -> None:
        """Stop following the cluster."""
        await self.cluster.close()

    def _seen(self, has: Belongings) -> Observed | None:
        return observed(has, self.cluster.settings, self.cluster.node)

    async def _foundations(self, plan: MachinePlan) -> tuple[Object, ...]:
        """Have all that a VirtualMachine refers to; return its claims."""
        await self._attachments.ensure(plan)
        await self._imports.ensure(plan, self.cluster.of(plan.ref.uid))
        claims = await self._claims.ensure(plan, self.cluster.of(plan.ref.uid))
        await self._guest_data.ensure(plan)
        return claims

    async def _machine(self, plan: MachinePlan) -> Object:
        body = virtual_machine(plan, owned=self.owned)
        try:
            made = await self.cluster.client.create(MACHINES, body)
        except AlreadyExists:
            made = await self.cluster.client.get(MACHINES, plan.ref.name, plan.ref.namespace)
            if (made["metadata"].get("labels") or {}).get(UID) != plan.ref.uid:
                raise Rejected(
                    f"there is a VirtualMachine {plan.ref.name} that is not this machine's: delete "
                    "it or choose another name",
                    reason="NameTaken",
                ) from None
        self.cluster.machines.cache.seen(made)
        return made

    async def _unplug(self, ref: MachineRef) -> None:
        path = SUBRESOURCES.path(ref.namespace, ref.name, "stop")
        body = orjson.dumps({"gracePeriod": 0})
        await self.cluster.client.send(Request("update", "PUT", path, {}, body))

    async def _remove_machine(self, ref: MachineRef, vm: Object) -> None:
        try:
            await self.cluster.client.delete(
                MACHINES, ref.name, ref.namespace, uid=vm["metadata"]["uid"]
            )
        except NotFound:
            return

    async def _remove_claim(self, claim: Object) -> None:
        metadata = claim["metadata"]
        try:
            await self.cluster.client.delete(
                CLAIMS, metadata["name"], metadata["namespace"], uid=metadata["uid"]
            )
        except NotFound:
            return


def _changed(vm: Object, instance: Object | None, plan: MachinePlan, plugs: Plugs) -> Object:
    """Return the VirtualMachine as it is to be; what others added beside our part stays."""
    wanted = virtual_machine(plan, owned=True)
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
        "metadata": {**metadata, "annotations": annotations},
        "spec": {
            **vm["spec"],
            "template": {"metadata": {**kept["metadata"], "labels": labels}, "spec": spec},
        },
    }


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
        due=PATIENCE,
        parts=tuple(parts.values()),
        imports=seen_imports(has),
        hindered=Hindrance(lack.reason, lack.message),
    )


def _leaving(seen: Observed | None) -> Observed | None:
    """Return what is seen of a machine that was told to go."""
    return replace(seen, changing="delete", due=PATIENCE, hindered=None) if seen else None


def _kept(claim: Object) -> KeptVolume:
    return KeptVolume(
        claim["metadata"]["namespace"],
        _volume_id(claim),
        mib(claim["spec"]["resources"]["requests"]["storage"]),
        claim["spec"].get("storageClassName"),
    )


def _volume_id(claim: Object) -> str:
    annotations: dict[str, str] = claim["metadata"].get("annotations") or {}
    return annotations.get(VOLUME) or str(claim["metadata"]["name"])
