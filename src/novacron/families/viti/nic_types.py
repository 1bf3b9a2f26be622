"""Network interfaces of a Machine: by the specification, and upstream's single network."""

from typing import Annotated, Literal

from pydantic import Field

from novacron.crd import Atomic, Model, Rule
from novacron.families.shared_types import Name, Text

__all__ = ["MAX_NICS", "MacAddress", "Nic", "SingleNetwork", "apart"]

MAX_NICS = 32
_MAC = "^[0-9a-fA-F][02468aceACE](:[0-9a-fA-F]{2}){5}$"

MacAddress = Annotated[
    str,
    Field(max_length=32),
    Rule(f"self.matches('{_MAC}')", "must be a unicast MAC address such as 52:54:00:12:34:56"),
]
ObjectName = Annotated[
    str,
    Field(min_length=1, max_length=253),
    Rule(
        "self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",
        "must be the name of an object: lower-case letters, digits, '-' and '.'",
    ),
]


class Nic(Model):
    """A network interface."""

    name: Name
    """The interface's name within the machine."""
    network_name: ObjectName | None = None
    """The NetworkConfiguration of this namespace that it is on; without it, the pod network."""
    model: Literal["virtio", "e1000", "e1000e", "rtl8139"] | None = None
    """What the guest sees; without it, virtio."""
    mac_address: MacAddress | None = None
    """Its MAC address; without it, one that stays the same for as long as the machine exists."""


def apart() -> tuple[Rule, ...]:
    """Return the rules that keep the interfaces of one list apart."""
    return (
        Rule(
            "self.all(a, !has(a.macAddress) || self.exists_one(b, has(b.macAddress)"
            " && b.macAddress.lowerAscii() == a.macAddress.lowerAscii()))",
            "each interface needs a macAddress of its own: change one, or leave it out",
        ),
        Rule(
            "self.filter(nic, !has(nic.networkName)).size() <= 1",
            "only one interface can be on the pod network: give the others a networkName",
        ),
    )


class Interface(Model):
    """Upstream's word for an interface of the single network."""

    name: Name | None = None
    """The interface's name within the machine."""
    subnet: Text | None = None
    """Has no effect."""
    security_groups: Annotated[list[Text], Atomic(), Field(max_length=64)] = []
    """Has no effect."""
    primary: bool | None = None
    """Has no effect."""


class SingleNetwork(Model):
    """Upstream's word for networks: one interface."""

    network_namespace_name: ObjectName | None = None
    """The NetworkConfiguration of this namespace that the interface is on."""
    vpc: Text | None = None
    """Has no effect."""
    subnet: Text | None = None
    """Has no effect."""
    assign_public_ip: Annotated[bool | None, Field(alias="assignPublicIP")] = None
    """Has no effect."""
    private_ip: Annotated[str | None, Field(alias="privateIP", max_length=64)] = None
    """Has no effect: write the address into the NetworkConfiguration."""
    public_ip: Annotated[str | None, Field(alias="publicIP", max_length=64)] = None
    """Has no effect."""
    interfaces: Annotated[list[Interface], Atomic(), Field(max_length=1)] = []
    """What the interface is called."""
