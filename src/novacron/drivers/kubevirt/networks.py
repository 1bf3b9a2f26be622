"""The networks that a machine's interfaces are on, as attachments that Multus knows."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson

from novacron.core.conditions import Condition
from novacron.core.errors import Busy
from novacron.core.machine import MachinePlan, MachineRef, Nic
from novacron.core.segment import Segment
from novacron.drivers.kubevirt.cluster import Cluster
from novacron.drivers.kubevirt.convert import is_pod_network, owned_by
from novacron.drivers.kubevirt.missing import Missing, is_namespace, no_namespace
from novacron.drivers.kubevirt.names import MACHINES, NETWORKS
from novacron.drivers.kubevirt.removal import remove
from novacron.drivers.kubevirt.sameness import difference
from novacron.runtime.errors import AlreadyExists, NotFound
from novacron.runtime.resource import Object

__all__ = ["Attachments"]

# On attachments that we made: only those are ever changed or removed.
MADE = "novacron.io/made-for"


@dataclass(frozen=True, slots=True)
class Attachments:
    """Sees to it that the networks of machines can be attached to in one cluster."""

    cluster: Cluster
    owned: bool
    _wanted: Counter[tuple[str, str]] = field(default_factory=Counter)
    _tidying: asyncio.Lock = field(default_factory=asyncio.Lock)

    @asynccontextmanager
    async def in_use(self, plan: MachinePlan) -> AsyncIterator[None]:
        """Keep the attachments of a machine that is being made from being tidied away."""
        names = [(plan.ref.namespace, nic.network) for nic in plan.nics if not is_pod_network(nic)]
        async with self._tidying:
            self._wanted.update(names)
        try:
            yield
        finally:
            self._wanted.subtract(names)

    async def ensure(self, plan: MachinePlan) -> None:
        """Have an attachment for each network that is not the pods' own."""
        for nic in plan.nics:
            if not is_pod_network(nic):
                await self._have(plan.ref, nic)

    async def _have(self, ref: MachineRef, nic: Nic) -> None:
        try:
            found = await self.cluster.client.get(NETWORKS, nic.network, ref.namespace)
        except NotFound:
            if nic.segment is None:
                raise _missing(nic, "create it or declare the network") from None
            await self._make(ref, nic.network, nic.segment)
            return
        ours = MADE in (found["metadata"].get("labels") or {})
        if ours and nic.segment is not None:
            await self._keep(ref, found, self._definition(ref, nic.network, nic.segment))

    async def _keep(self, ref: MachineRef, found: Object, wanted: Object) -> None:
        """Have an attachment that we made say what it is to, and go with whom it is to go with.

        Whoever declared the network may have deleted and declared it anew.
        """
        owners = wanted["metadata"].get("ownerReferences")
        if "deletionTimestamp" in found["metadata"]:
            raise Busy(
                f"NetworkAttachmentDefinition {ref.namespace}/{wanted['metadata']['name']} "
                "is being deleted and is made again"
            )
        if difference(found["metadata"].get("ownerReferences"), owners or []) is None and (
            found["spec"]["config"] == wanted["spec"]["config"]
        ):
            return
        metadata = {**found["metadata"], **({"ownerReferences": owners} if owners else {})}
        changed = {**found, "metadata": metadata, "spec": wanted["spec"]}
        await self.cluster.client.replace(NETWORKS, changed)

    def _definition(self, ref: MachineRef, name: str, segment: Segment) -> Object:
        declared = segment.declared_by
        return {
            "apiVersion": NETWORKS.api_version,
            "kind": NETWORKS.kind,
            "metadata": {
                "name": name,
                "namespace": ref.namespace,
                "labels": {MADE: name, **(declared.labels if declared else {})},
                **(owned_by(declared) if self.owned else {}),
            },
            "spec": {"config": _config(name, segment)},
        }

    async def _make(self, ref: MachineRef, name: str, segment: Segment) -> None:
        try:
            await self.cluster.client.create(NETWORKS, self._definition(ref, name, segment))
        except AlreadyExists:
            return  # somebody who needs it too was faster
        except NotFound as error:
            if is_namespace(error):
                raise no_namespace(self.cluster.name, ref.namespace) from error
            raise Missing(
                "NetworkFailed",
                "the cluster knows no NetworkAttachmentDefinition: install Multus, or leave out "
                "the Machine's networks to have the pods' one",
                Condition("NetworkReady", "False", "NetworkFailed", error.message),
            ) from error

    async def tidy(self, namespace: str) -> None:
        """Remove attachments that we made in a namespace and that nobody uses any more.

        Where what declared a network is in the same cluster, they go with that.
        """
        if self.owned:
            return
        try:
            made = await self.cluster.client.list(NETWORKS, namespace, labels=MADE)
        except NotFound:
            return  # no Multus, no attachments
        async with self._tidying:
            used = await self._used(namespace) if made else set()
            for each in made:
                name = each["metadata"]["name"]
                if name not in used and not self._wanted[namespace, name]:
                    await remove(self.cluster.client, NETWORKS, each)

    async def _used(self, namespace: str) -> set[str]:
        machines = await self.cluster.client.list(MACHINES, namespace)
        return {name for each in machines for name in attached_to(each)}


def attached_to(vm: Object) -> tuple[str, ...]:
    """Return the names of the attachments a VirtualMachine uses."""
    networks: list[dict[str, Any]] = vm["spec"]["template"]["spec"].get("networks") or []
    return tuple(each["multus"]["networkName"] for each in networks if "multus" in each)


def _missing(nic: Nic, remedy: str) -> Missing:
    message = f"there is no NetworkAttachmentDefinition {nic.network}: {remedy}"
    part = Condition("NetworkReady", "False", "NetworkFailed", message)
    return Missing("NetworkConfigurationNotFound", message, part)


def _config(name: str, segment: Segment) -> str:
    """Return what Multus hands to the CNI plug-in."""
    wanted: dict[str, Any] = {
        "cniVersion": "0.3.1",
        "name": name,
        "type": "bridge",
        "bridge": segment.bridge,
        "ipam": {},
    }
    if segment.vlan is not None:
        wanted["vlan"] = segment.vlan
    return orjson.dumps(wanted).decode()
