"""What a guest is told about itself: a Secret of the machine's own, made a disk by KubeVirt."""

import base64
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import orjson

from novacron.core.cloud_init import Source, Told
from novacron.core.conditions import Condition
from novacron.core.errors import Busy
from novacron.core.guest_network import network_configuration
from novacron.core.machine import MachinePlan, MachineRef
from novacron.core.multi_part import joined
from novacron.drivers.kubevirt.cluster import Cluster
from novacron.drivers.kubevirt.convert import has_addresses, marks
from novacron.drivers.kubevirt.missing import Missing, name_taken
from novacron.drivers.kubevirt.names import SECRETS, secret_name
from novacron.drivers.kubevirt.ownership import belongs_to
from novacron.runtime.errors import AlreadyExists, NotFound

__all__ = ["GuestData", "ReadSource"]

Object = dict[str, Any]
# Reads an entry of a Secret or ConfigMap where machines are declared, by namespace; None if absent.
ReadSource = Callable[[str, Source], Awaitable[bytes | None]]


@dataclass(frozen=True, slots=True)
class GuestData:
    """Keeps the Secrets of machines in one cluster."""

    cluster: Cluster
    owned: bool
    read: ReadSource

    async def ensure(self, plan: MachinePlan, *, made: bool) -> None:
        """Have the Secret that the machine's VirtualMachine refers to.

        One that is ``made`` most likely has it, so it is looked for before anything is written.
        """
        data = await self._data(plan)
        if not data:
            return
        body = {
            "apiVersion": SECRETS.api_version,
            "kind": SECRETS.kind,
            "metadata": {
                "name": secret_name(plan.ref),
                "namespace": plan.ref.namespace,
                **marks(plan, owned=self.owned),
            },
            "data": data,
        }
        if made and await self._is_kept(plan.ref, body):
            return
        try:
            await self.cluster.client.create(SECRETS, body)
        except AlreadyExists:
            if not await self._is_kept(plan.ref, body):
                raise Busy(f"Secret {secret_name(plan.ref)} was just deleted: look again") from None

    async def remove(self, ref: MachineRef) -> None:
        """Remove what was kept for a machine."""
        try:
            found = await self.cluster.client.get(SECRETS, secret_name(ref), ref.namespace)
            if belongs_to(found, ref.uid):
                await self.cluster.client.delete(
                    SECRETS, secret_name(ref), ref.namespace, uid=found["metadata"]["uid"]
                )
        except NotFound:
            return

    async def _data(self, plan: MachinePlan) -> dict[str, str]:
        told = plan.told or Told()
        parts = [plan.user_data.encode()] if plan.user_data else []
        parts += told.user_data
        if told.user_source is not None:
            parts.append(await self._fetched(plan.ref, told.user_source))
        network = told.network_data
        if told.network_source is not None:
            network = await self._fetched(plan.ref, told.network_source)
        if network is None and has_addresses(plan):
            network = orjson.dumps(network_configuration((nic.mac or "", nic) for nic in plan.nics))
        found = {"userdata": joined(tuple(parts)), "networkdata": network}
        return {name: base64.b64encode(value).decode() for name, value in found.items() if value}

    async def _fetched(self, ref: MachineRef, source: Source) -> bytes:
        content = await self.read(ref.namespace, source)
        if content is None:
            message = (
                f"cloud-init refers to key {source.key} of {source.kind} {source.name}, which is "
                f"not there: create it in namespace {ref.namespace}"
            )
            part = Condition("VirtualMachineReady", "False", "VMFailed", message)
            raise Missing("CloudInitSourceNotFound", message, part)
        return content

    async def _is_kept(self, ref: MachineRef, body: Object) -> bool:
        """Have a Secret that is there say what it is to; say whether it is there."""
        try:
            found = await self.cluster.client.get(SECRETS, secret_name(ref), ref.namespace)
        except NotFound:
            return False
        if not belongs_to(found, ref.uid):
            remedy = "give the machine another name"
            raise name_taken(SECRETS.kind, secret_name(ref), "VirtualMachineReady", remedy)
        if found.get("data") != body["data"]:
            await self.cluster.client.replace(SECRETS, {**found, "data": body["data"]})
        return True
