"""Who may fetch a machine's image: a copy of its Secret where that is not, in another cluster.

CDI looks for the Secret beside the DataVolume. In the cluster that machines are declared in it is
there already.
"""

import base64
from dataclasses import dataclass
from typing import Any

from novacron.core.cloud_init import Source
from novacron.core.conditions import Condition
from novacron.core.image import Medium
from novacron.core.machine import MachinePlan, MachineRef
from novacron.drivers.kubevirt.cluster import Cluster
from novacron.drivers.kubevirt.convert import marks
from novacron.drivers.kubevirt.guest_data import ReadSource
from novacron.drivers.kubevirt.missing import Missing, is_namespace, name_taken, no_namespace
from novacron.drivers.kubevirt.names import ISO, SECRETS
from novacron.drivers.kubevirt.ownership import belongs_to
from novacron.runtime.errors import AlreadyExists, NotFound

__all__ = ["Fetching"]

Object = dict[str, Any]

# What CDI reads of such a Secret: a name and a password, or the two halves of an access key.
ENTRIES = ("accessKeyId", "secretKey")


@dataclass(frozen=True, slots=True)
class Fetching:
    """Keeps copies of such Secrets in one cluster; in that of the machines themselves, none."""

    cluster: Cluster
    owned: bool
    read: ReadSource

    async def secret_for(self, plan: MachinePlan, disk: str, medium: Medium) -> str | None:
        """Return the name of the Secret by which CDI fetches a medium; it is there by then.

        A copy says what the Secret does by now: an import that fails may lack just that.
        """
        if medium.credentials is None or self.owned:
            return medium.credentials
        name = _copy_name(plan.ref, disk)
        body = {
            "apiVersion": SECRETS.api_version,
            "kind": SECRETS.kind,
            "metadata": {
                "name": name,
                "namespace": plan.ref.namespace,
                **marks(plan, owned=False),
            },
            "data": await self._entries(plan.ref, medium.credentials),
        }
        try:
            await self.cluster.client.create(SECRETS, body)
        except AlreadyExists:
            await self._renew(plan.ref, body)
        except NotFound as error:
            if is_namespace(error):
                raise no_namespace(self.cluster.name, plan.ref.namespace) from error
            raise
        return name

    async def remove(self, ref: MachineRef) -> None:
        """Remove the copies that were made for a machine."""
        if self.owned:
            return
        for name in {_copy_name(ref, disk) for disk in ("", ISO)}:
            try:
                found = await self.cluster.client.get(SECRETS, name, ref.namespace)
                if belongs_to(found, ref.uid):
                    await self.cluster.client.delete(
                        SECRETS, name, ref.namespace, uid=found["metadata"]["uid"]
                    )
            except NotFound:
                continue

    async def _entries(self, ref: MachineRef, secret: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for key in ENTRIES:
            content = await self.read(ref.namespace, Source(SECRETS.kind, secret, key))
            if content is None:
                message = (
                    f"credentialsSecret {secret} is not there or has no entry {key}: create it in "
                    f"namespace {ref.namespace}, with {' and '.join(ENTRIES)}"
                )
                part = Condition("StorageReady", "False", "PVCPending", message)
                raise Missing("CredentialsNotFound", message, part)
            found[key] = base64.b64encode(content).decode()
        return found

    async def _renew(self, ref: MachineRef, body: Object) -> None:
        name = body["metadata"]["name"]
        found = await self.cluster.client.get(SECRETS, name, ref.namespace)
        if not belongs_to(found, ref.uid):
            raise name_taken(SECRETS.kind, name, "StorageReady", "give the machine another name")
        if found.get("data") != body["data"]:
            await self.cluster.client.replace(SECRETS, {**found, "data": body["data"]})


def _copy_name(ref: MachineRef, disk: str) -> str:
    """Return what a copy is called: by the machine, not by a disk that may be called otherwise."""
    return f"{ref.name}-{'iso' if disk == ISO else 'image'}-credentials"
