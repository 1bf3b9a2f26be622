"""NetworkConfiguration ``vitistack.io/v1alpha1``: a network that Machines are on.

By the specification it is what a user writes: a VLAN and a bridge. Upstream writes one for every
machine, with the addresses that others have set aside for it; both fit into one kind.
"""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from novacron.crd import AGE, Atomic, Column, CustomResource, ListMap, ListSet, Model, Rule, kind
from novacron.families.shared_types import Condition, Text
from novacron.families.viti.nic_types import MacAddress, ObjectName

__all__ = ["NetworkConfiguration"]

Identifier = Annotated[
    str,
    Field(min_length=2, max_length=32),
    Rule("self.matches('^[A-Za-z0-9_-]+$')", "must be letters, digits, '_' and '-'"),
]
Address = Annotated[
    str,
    Field(max_length=64),
    Rule(
        "isIP(self) || isCIDR(self)",
        "must be an IP address such as 10.0.0.5, with or without a prefix length",
    ),
]
Subnet = Annotated[
    str, Field(max_length=64), Rule("isCIDR(self)", "must be a subnet such as 10.0.0.0/24")
]
Gateway = Annotated[
    str, Field(max_length=64), Rule("isIP(self)", "must be an IP address such as 10.0.0.1")
]
Addresses = Annotated[list[Address], Atomic(), Field(max_length=16)]
Vlan = Annotated[
    str,
    Field(max_length=16),
    Rule(
        "self.matches('^[0-9]{1,4}$') && int(self) >= 1 && int(self) <= 4094",
        "must be a VLAN from 1 to 4094",
    ),
]


class InterfaceConfiguration(Model):
    """What one interface, found by its MAC address, has on this network."""

    name: Annotated[str, Field(max_length=63)] | None = None
    """The interface's name."""
    mac_address: MacAddress | None = None
    """Its MAC address."""
    ipv4_addresses: Annotated[Addresses, Field(alias="ipv4Addresses")] = []
    """Its IPv4 addresses."""
    ipv6_addresses: Annotated[Addresses, Field(alias="ipv6Addresses")] = []
    """Its IPv6 addresses."""
    vlan: Vlan | None = None
    """Its VLAN."""
    ipv4_subnet: Annotated[Subnet | None, Field(alias="ipv4Subnet")] = None
    """The subnet of its IPv4 addresses."""
    ipv6_subnet: Annotated[Subnet | None, Field(alias="ipv6Subnet")] = None
    """The subnet of its IPv6 addresses."""
    ipv4_gateway: Annotated[Gateway | None, Field(alias="ipv4Gateway")] = None
    """Its way out."""
    ipv6_gateway: Annotated[Gateway | None, Field(alias="ipv6Gateway")] = None
    """Its way out."""
    dns: Annotated[list[Gateway], Atomic(), Field(max_length=16)] = []
    """Its name servers."""
    dhcp_reserved: bool | None = None
    """Whether DHCP gives it these addresses."""
    ip_allocated: bool | None = None
    """Whether it has an address."""
    allocation_method: Literal["dhcp", "static"] | None = None
    """How it comes by it."""
    allocation_expiry: datetime | None = None
    """Until when it has it."""


class NetworkConfigurationSpec(Model):
    """What the network is."""

    __rules__ = (
        Rule(
            "!has(self.networkAttachmentDefinition) || (!has(self.vlan) && !has(self.bridge))",
            "networkAttachmentDefinition says all about the network: leave vlan and bridge out",
            field_path=".networkAttachmentDefinition",
            reason="FieldValueForbidden",
        ),
    )

    vlan: Annotated[int, Field(ge=1, le=4094)] | None = None
    """The VLAN that machines are in, untagged for them; without it, none."""
    bridge: (
        Annotated[
            str,
            Field(min_length=1, max_length=15),
            Rule(
                "self.matches('^[A-Za-z0-9_.-]+$') && !(self in ['.', '..'])",
                "must be the name of a bridge on the nodes: letters, digits, '_', '.' and '-'",
            ),
        ]
        | None
    ) = None
    """The nodes' bridge that machines are plugged into; without it, br0 where there is a vlan."""
    network_attachment_definition: ObjectName | None = None
    """A NetworkAttachmentDefinition of this namespace that is there already, in place of one that
    is made."""
    network_interfaces: Annotated[
        list[InterfaceConfiguration],
        Atomic(),
        Field(max_length=256),
        Rule(
            "self.all(a, !has(a.macAddress) || self.exists_one(b, has(b.macAddress)"
            " && b.macAddress.lowerAscii() == a.macAddress.lowerAscii()))",
            "each interface needs a macAddress of its own",
        ),
    ] = []
    """What is set aside for single interfaces."""
    name: Identifier | None = None
    """What people call it."""
    description: Annotated[str, Field(max_length=256)] | None = None
    """What it is for."""
    network_namespace_name: ObjectName | None = None
    """Upstream's; for those who hand out addresses."""
    datacenter_identifier: Identifier | None = None
    """Upstream's; for those who hand out addresses."""
    supervisor_identifier: Identifier | None = None
    """Upstream's; for those who hand out addresses."""
    cluster_identifier: Identifier | None = None
    """Upstream's; for those who hand out addresses."""
    provider: Annotated[str, Field(min_length=1, max_length=32)] | None = None
    """Who hands out addresses, such as kea."""


class NetworkConfigurationStatus(Model):
    """What is known of the network."""

    conditions: Annotated[list[Condition], ListMap("type")] = []
    """What is so and what is not."""
    phase: str | None = None
    """Ready or Failed; with spec.provider, whatever who hands out addresses says."""
    status: str | None = None
    """Upstream's; for those who hand out addresses."""
    message: Text | None = None
    """Why, in a sentence."""
    created: datetime | None = None
    """Upstream's; for those who hand out addresses."""
    network_interfaces: Annotated[
        list[InterfaceConfiguration], Atomic(), Field(max_length=256)
    ] = []
    """What interfaces have, as whoever hands out addresses tells."""
    network_attachment_definition: str | None = None
    """The NetworkAttachmentDefinition that stands for it."""
    machines: Annotated[list[str], ListSet()] = []
    """The machines that are on it."""
    observed_generation: Annotated[int, Field(ge=0)] | None = None
    """The metadata.generation that all this was found out for."""


@kind(
    group="vitistack.io",
    version="v1alpha1",
    short=("nc",),
    categories=("vitistack",),
    columns=(
        Column("VLAN", ".spec.vlan", "integer"),
        Column("Bridge", ".spec.bridge"),
        Column("Phase", ".status.phase"),
        Column("Machines", ".status.machines"),
        AGE,
        Column("Attachment", ".status.networkAttachmentDefinition", priority=1),
        Column("Provider", ".spec.provider", priority=1),
    ),
)
class NetworkConfiguration(CustomResource):
    """A network that machines are on."""

    spec: NetworkConfigurationSpec = NetworkConfigurationSpec()
    """What the network is."""
    status: NetworkConfigurationStatus | None = None
    """What is known of the network."""
