"""Secrets that are a machine's own: made beside it, kept as they should be, and gone with it."""

from dataclasses import dataclass
from typing import Any

from novacron.core.errors import Busy
from novacron.core.machine import MachinePlan, MachineRef
from novacron.drivers.kubevirt.cluster import Cluster
from novacron.drivers.kubevirt.convert import marks
from novacron.drivers.kubevirt.missing import is_namespace, name_taken, no_namespace
from novacron.drivers.kubevirt.names import SECRETS
from novacron.drivers.kubevirt.ownership import belongs_to
from novacron.runtime.errors import AlreadyExists, NotFound

__all__ = ["OwnSecrets"]

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class OwnSecrets:
    """Keeps them in one cluster; ``owned`` where their machines are declared in it."""

    cluster: Cluster
    owned: bool

    async def keep(
        self, plan: MachinePlan, name: str, data: dict[str, str], part: str, *, likely: bool = False
    ) -> None:
        """Have a Secret with this content; ``part`` names the condition that lacks it otherwise.

        One that is ``likely`` there is looked for before anything is written.
        """
        body = {
            "apiVersion": SECRETS.api_version,
            "kind": SECRETS.kind,
            "metadata": {
                "name": name,
                "namespace": plan.ref.namespace,
                **marks(plan, owned=self.owned),
            },
            "data": data,
        }
        if likely and await self._renewed(plan.ref, body, part):
            return
        try:
            await self.cluster.client.create(SECRETS, body)
        except AlreadyExists:
            if not await self._renewed(plan.ref, body, part):
                raise Busy(f"Secret {name} was just deleted: look again") from None
        except NotFound as error:
            if is_namespace(error):
                raise no_namespace(self.cluster.name, plan.ref.namespace) from error
            raise

    async def remove(self, ref: MachineRef, name: str) -> None:
        """Remove one that was made for a machine; somebody else's of that name stays."""
        try:
            found = await self.cluster.client.get(SECRETS, name, ref.namespace)
            if belongs_to(found, ref.uid):
                uid = found["metadata"]["uid"]
                await self.cluster.client.delete(SECRETS, name, ref.namespace, uid=uid)
        except NotFound:
            return

    async def _renewed(self, ref: MachineRef, body: Object, part: str) -> bool:
        """Have a Secret that is there say what it is to; say whether it is there."""
        name = body["metadata"]["name"]
        try:
            found = await self.cluster.client.get(SECRETS, name, ref.namespace)
        except NotFound:
            return False
        if not belongs_to(found, ref.uid):
            raise name_taken(SECRETS.kind, name, part, "give the machine another name")
        if found.get("data") != body["data"]:
            await self.cluster.client.replace(SECRETS, {**found, "data": body["data"]})
        return True
