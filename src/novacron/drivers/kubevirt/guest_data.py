"""What a guest is told about itself: a Secret of the machine's own, made a disk by KubeVirt."""

import base64
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from typing import Any

from novacron.core.conditions import Condition
from novacron.core.declaration import SecretKey
from novacron.core.errors import Rejected
from novacron.core.machine import MachinePlan, MachineRef
from novacron.drivers.kubevirt.cluster import Cluster
from novacron.drivers.kubevirt.convert import marks
from novacron.drivers.kubevirt.missing import Missing
from novacron.drivers.kubevirt.names import SECRETS, UID, secret_name
from novacron.runtime.errors import AlreadyExists, NotFound

__all__ = ["GuestData", "ReadSecret", "merged"]

Object = dict[str, Any]
# Reads an entry of a Secret where machines are declared: namespace, name, key; None if absent.
ReadSecret = Callable[[str, SecretKey], Awaitable[bytes | None]]

KINDS = (
    ("#cloud-config", "cloud-config"),
    ("#!", "x-shellscript"),
    ("#cloud-boothook", "cloud-boothook"),
    ("#include", "x-include-url"),
    ("## template: jinja", "jinja2"),
)


@dataclass(frozen=True, slots=True)
class GuestData:
    """Keeps the Secrets of machines in one cluster."""

    cluster: Cluster
    owned: bool
    read: ReadSecret

    async def ensure(self, plan: MachinePlan) -> None:
        """Have the Secret that the machine's VirtualMachine refers to."""
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
        try:
            await self.cluster.client.create(SECRETS, body)
        except AlreadyExists:
            await self._update(plan.ref, body)

    async def remove(self, ref: MachineRef) -> None:
        """Remove what was kept for a machine."""
        try:
            found = await self.cluster.client.get(SECRETS, secret_name(ref), ref.namespace)
            if _uid(found) == ref.uid:
                await self.cluster.client.delete(
                    SECRETS, secret_name(ref), ref.namespace, uid=found["metadata"]["uid"]
                )
        except NotFound:
            return

    async def _data(self, plan: MachinePlan) -> dict[str, str]:
        parts = [plan.user_data] if plan.user_data else []
        if (source := plan.user_data_from) is not None:
            content = await self.read(plan.ref.namespace, source)
            if content is None:
                message = (
                    f"cloudInit.secretRef names key {source.key} of Secret {source.name}, which is "
                    "not there: create it"
                )
                part = Condition("VirtualMachineReady", "False", "VMFailed", message)
                raise Missing("CloudInitSecretNotFound", message, part)
            parts.append(content.decode(errors="replace"))
        found = {"userdata": merged(parts), "networkdata": plan.network_data}
        return {
            name: base64.b64encode(value.encode()).decode()
            for name, value in found.items()
            if value
        }

    async def _update(self, ref: MachineRef, body: Object) -> None:
        found = await self.cluster.client.get(SECRETS, secret_name(ref), ref.namespace)
        if _uid(found) != ref.uid:
            raise Rejected(
                f"there is a Secret {secret_name(ref)} that is not this machine's: delete it or "
                "rename the machine",
                reason="NameTaken",
            )
        if found.get("data") != body["data"]:
            await self.cluster.client.replace(SECRETS, {**found, "data": body["data"]})


def merged(parts: list[str]) -> str:
    """Return user data that says all of several; cloud-init takes them in this order."""
    if len(parts) < 2:
        return "".join(parts)
    # A boundary of our own choosing: the same parts have to make the same text.
    whole = MIMEMultipart(boundary="=novacron=")
    for part in parts:
        kind = next((kind for start, kind in KINDS if part.startswith(start)), "plain")
        whole.attach(MIMEText(part, kind, "utf-8"))
    return whole.as_string()


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _uid(found: Object) -> str | None:
    labels: dict[str, str] = found["metadata"].get("labels") or {}
    return labels.get(UID)
