"""Who may fetch a machine's image: a copy of its Secret where that is not, in another cluster.

CDI looks for the Secret beside the DataVolume. In the cluster that machines are declared in it is
there already.
"""

import base64
from dataclasses import dataclass

from novacron.core.cloud_init import Source
from novacron.core.conditions import Condition
from novacron.core.image import Medium
from novacron.core.machine import MachinePlan, MachineRef
from novacron.drivers.kubevirt.cluster import Cluster
from novacron.drivers.kubevirt.guest_data import ReadSource
from novacron.drivers.kubevirt.missing import Missing
from novacron.drivers.kubevirt.names import ISO, SECRETS
from novacron.drivers.kubevirt.own_secrets import OwnSecrets

__all__ = ["Fetching"]

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
        data = await self._entries(plan.ref, medium.credentials)
        await self._secrets.keep(plan, name, data, "StorageReady")
        return name

    async def remove(self, ref: MachineRef) -> None:
        """Remove the copies that were made for a machine."""
        if self.owned:
            return
        for name in {_copy_name(ref, disk) for disk in ("", ISO)}:
            await self._secrets.remove(ref, name)

    @property
    def _secrets(self) -> OwnSecrets:
        return OwnSecrets(self.cluster, self.owned)

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


def _copy_name(ref: MachineRef, disk: str) -> str:
    """Return what a copy is called: by the machine, not by a disk that may be called otherwise."""
    return f"{ref.name}-{'iso' if disk == ISO else 'image'}-credentials"
