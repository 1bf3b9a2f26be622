"""Network interfaces of a Machine in one word, each with the address it keeps."""

from dataclasses import dataclass
from typing import Any

from novacron.core.errors import Rejected
from novacron.families.viti.mac import stable_mac
from novacron.families.viti.values import VIRTIO, Nic

__all__ = ["DEFAULT_BRIDGE", "Attachment", "attachment_of", "nics_of"]

Object = dict[str, Any]

# What an interface is called that nobody named.
ONLY_NIC = "default"
DEFAULT_BRIDGE = "br0"


def nics_of(spec: Object, uid: str) -> tuple[Nic, ...]:
    """Return the interfaces; a machine that says nothing has one on the pod network."""
    said = spec.get("networks") or [_single(spec.get("network") or {})]
    taken = [each["macAddress"] for each in said if "macAddress" in each]
    return tuple(
        Nic(
            name=each["name"],
            network=each.get("networkName"),
            mac=each.get("macAddress", "").lower() or stable_mac(uid, each["name"], taken),
            model=each.get("model", VIRTIO),
        )
        for each in said
    )


def _single(network: Object) -> Object:
    """Return upstream's single network as an interface of ours."""
    interfaces: list[Object] = network.get("interfaces") or [{}]
    named = interfaces[0].get("name") or ONLY_NIC
    on = network.get("networkNamespaceName")
    return {"name": named} | ({"networkName": on} if on else {})


@dataclass(frozen=True, slots=True)
class Attachment:
    """How a network is reached: a definition that is there, or a bridge and perhaps a VLAN."""

    existing: str | None = None
    bridge: str = DEFAULT_BRIDGE
    vlan: int | None = None


def attachment_of(name: str, spec: Object) -> Attachment:
    """Return what a NetworkConfiguration of this name stands for."""
    if existing := spec.get("networkAttachmentDefinition"):
        return Attachment(existing=existing)
    vlan, bridge = spec.get("vlan"), spec.get("bridge")
    if vlan is None and bridge is None:
        raise Rejected(
            f"NetworkConfiguration {name} says neither vlan nor bridge: set one of them, or "
            "networkAttachmentDefinition",
            reason="NetworkFailed",
        )
    return Attachment(bridge=bridge or DEFAULT_BRIDGE, vlan=vlan)
