"""What a guest is told about itself: a Secret of the machine's own, made a disk by KubeVirt."""

import base64
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import orjson

from novacron.core.cloud_init import Source, Told
from novacron.core.conditions import Condition
from novacron.core.guest_network import network_configuration
from novacron.core.machine import MachinePlan, MachineRef
from novacron.core.multi_part import joined
from novacron.drivers.kubevirt.cluster import Cluster
from novacron.drivers.kubevirt.convert import has_addresses
from novacron.drivers.kubevirt.missing import Missing
from novacron.drivers.kubevirt.names import secret_name
from novacron.drivers.kubevirt.own_secrets import OwnSecrets

__all__ = ["GuestData", "ReadSource"]

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
        await self._secrets.keep(
            plan, secret_name(plan.ref), data, "VirtualMachineReady", likely=made
        )

    async def remove(self, ref: MachineRef) -> None:
        """Remove what was kept for a machine."""
        await self._secrets.remove(ref, secret_name(ref))

    @property
    def _secrets(self) -> OwnSecrets:
        return OwnSecrets(self.cluster, self.owned)

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
