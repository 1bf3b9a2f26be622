"""What a machine is made of: resources, image, networks, volumes, devices, hooks.

Nothing here forbids a change: a template may stand in any kind. What one kind does not let
change is a rule of that kind.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from novacron.crd import Atomic, IntOrString, ListMap, Model, PositiveQuantity, Rule
from novacron.families.novacron.placement_types import Affinity, Toleration
from novacron.families.novacron.volume_types import Volume
from novacron.families.shared_types import Labels, Name, Text

__all__ = [
    "AddressConfig",
    "Device",
    "Dns",
    "ExecAction",
    "Hook",
    "HttpGetAction",
    "HttpHeader",
    "Image",
    "Ipv4Config",
    "Ipv6Config",
    "Lifecycle",
    "MachineResources",
    "MachineTemplate",
    "Network",
    "TemplateMetadata",
    "TemplateSpec",
]

MAX_CPUS = 1024
MINIMUM_MEMORY = "512Mi"
MAX_NETWORKS = 32
MAX_VOLUMES = 64

_SOURCE = (
    "^((marketplace|builtin)://[^/ ][^ ]*|https?://[^/ ]+(/[^ ]*)?|s3://[^/ ]+/[^ ]+"
    "|pvc://[^/ ]+/[^/ ]+(/[^ ]+)?|file:///[^ ]+)$"
)
_MAC = "^[0-9a-fA-F][02468aceACE](:[0-9a-fA-F]{2}){5}$"


def at_least(memory: str) -> Rule:
    """Return the rule that a machine has so much memory; which is a setting of installation."""
    return Rule(
        f"!isQuantity(string(self)) || !quantity(string(self)).isLessThan(quantity('{memory}'))",
        f"must be at least {memory}",
    )


class MachineResources(Model):
    """How much of a host the machine takes."""

    cpu: Annotated[int, Field(ge=1, le=MAX_CPUS)]
    """Virtual CPUs, a whole number."""
    memory: Annotated[PositiveQuantity, at_least(MINIMUM_MEMORY)]
    """Memory; at least 512Mi, or what the definitions were installed with."""
    disk: PositiveQuantity = "10Gi"
    """Size of the first disk; it may grow and never shrink."""


class Image(Model):
    """What the first disk is made from."""

    source: Annotated[
        str,
        Field(max_length=2048),
        Rule(
            f"self.matches('{_SOURCE}')",
            "image.source is required and must be marketplace://name, builtin://name, "
            "http://host/path, https://host/path, s3://bucket/path, "
            "pvc://namespace/name, pvc://namespace/name/file or file:///path",
        ),
    ]
    """Where the image comes from: marketplace://, builtin://, http(s)://, s3://, pvc://, file://."""
    checksum: (
        Annotated[
            str,
            Field(max_length=135),
            Rule(
                "self.matches('^(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$')",
                "must be sha256: and 64, or sha512: and 128, lower-case hexadecimal digits",
            ),
        ]
        | None
    ) = None
    """What the image's bytes must amount to, such as sha256:…"""
    pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    """Always asks the source for every new machine if the image changed; IfNotPresent takes what
    the host has from there; Never takes only that. Without it, IfNotPresent."""


def _family(number: int, example: str) -> tuple[Rule, Rule]:
    """Return the rules that keep address and gateway in one family of addresses."""
    return (
        Rule(
            "!has(self.address) || (isCIDR(self.address)"
            f" && cidr(self.address).ip().family() == {number})",
            f"address must be an IPv{number} address with its prefix length such as {example}",
            field_path=".address",
        ),
        Rule(
            f"!has(self.gateway) || (isIP(self.gateway) && ip(self.gateway).family() == {number})",
            f"gateway must be an IPv{number} address without a prefix length",
            field_path=".gateway",
        ),
    )


class AddressConfig(Model):
    """How an interface comes by its address."""

    __rules__: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "self.?method.orValue('dhcp') != 'static' || has(self.address)",
            "method static needs an address with its prefix length",
            field_path=".address",
            reason="FieldValueRequired",
        ),
        Rule(
            "self.?method.orValue('dhcp') != 'dhcp' || (!has(self.address) && !has(self.gateway))",
            "method dhcp takes neither address nor gateway: leave them out or use method static",
            reason="FieldValueForbidden",
        ),
        Rule(
            "!has(self.address) || !has(self.gateway) || !isCIDR(self.address)"
            " || !isIP(self.gateway)"
            " || (ip(self.gateway).family() == 6 && ip(self.gateway).isLinkLocalUnicast())"
            " || (cidr(self.address).containsIP(self.gateway)"
            " && !self.address.startsWith(self.gateway + '/'))",
            "gateway must be another address in the same network as address, or link-local IPv6",
            field_path=".gateway",
        ),
    )

    method: Literal["dhcp", "static"] | None = None
    """dhcp asks the network for an address, static takes the one written here.

    Without it, IPv4 is dhcp and IPv6 whatever the network announces.
    """
    address: Annotated[str, Field(max_length=64)] | None = None
    """The static address with its prefix length."""
    gateway: Annotated[str, Field(max_length=64)] | None = None
    """Where packets for other networks go."""


class Ipv4Config(AddressConfig):
    """How an interface comes by its IPv4 address."""

    __rules__ = _family(4, "10.0.1.10/24")


class Ipv6Config(AddressConfig):
    """How an interface comes by its IPv6 address."""

    __rules__ = _family(6, "2001:db8::10/64")


class Dns(Model):
    """Whom the machine asks for names."""

    servers: Annotated[
        list[
            Annotated[
                str, Field(max_length=64), Rule("isIP(self)", "must be an IPv4 or IPv6 address")
            ]
        ],
        Atomic(),
        Field(max_length=8),
    ] = []
    """Addresses of name servers, the first asked first."""
    search: Annotated[
        list[Annotated[str, Field(max_length=253)]], Atomic(), Field(max_length=32)
    ] = []
    """Domains in which short names are looked for."""


class Network(Model):
    """One network interface."""

    name: Name
    """The network's name; each host says what it means, default is the host's own."""
    type: Literal["bridge", "ovs", "sr-iov", "macvlan", "overlay", "user"] | None = None
    """What the network has to be; without it, whatever the host says."""
    mac: (
        Annotated[
            str,
            Field(max_length=17),
            Rule(
                f"self.matches('{_MAC}')", "must be a unicast MAC address such as 52:54:00:12:34:56"
            ),
        ]
        | None
    ) = None
    """The hardware address; without it, one is made up."""
    ipv4: Ipv4Config | None = None
    """The IPv4 address; without it, dhcp."""
    ipv6: Ipv6Config | None = None
    """The IPv6 address; without it, whatever the network announces."""
    dns: Dns | None = None
    """Name servers; without them, those the network announces."""


class Device(Model):
    """A piece of hardware handed to the machine."""

    type: Annotated[str, Field(min_length=1, max_length=63)]
    """What it is, such as gpu."""
    vendor: Annotated[str, Field(max_length=63)] | None = None
    """Who makes it, such as nvidia."""
    model: Annotated[str, Field(max_length=63)] | None = None
    """Which one, such as tesla-t4."""
    count: Annotated[int, Field(ge=1, le=64)] | None = None
    """How many; without it, one."""


class ExecAction(Model):
    """A program to run inside the guest, by its agent."""

    command: Annotated[list[Text], Atomic(), Field(min_length=1, max_length=64)]
    """The program and its arguments; no shell is involved."""
    timeout_seconds: Annotated[int, Field(ge=1, le=86400)] | None = None
    """How long it may take; without it, 300 seconds."""


class HttpHeader(Model):
    """One header of a request."""

    name: Annotated[str, Field(min_length=1, max_length=256)]
    """The header's name."""
    value: Annotated[str, Field(max_length=4096)]
    """The header's value."""


class HttpGetAction(Model):
    """A request to send."""

    path: Text = "/"
    """The path to ask for."""
    port: Annotated[
        IntOrString,
        Rule(
            "type(self) == int ? self >= 1 && self <= 65535"
            " : string(self).matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?$')",
            "must be a port from 1 to 65535 or the name of one",
        ),
    ]
    """The port's number or name."""
    host: Annotated[str, Field(max_length=253)] | None = None
    """Whom to ask; without it, the machine's first address."""
    scheme: Literal["HTTP", "HTTPS"] = "HTTP"
    """Whether the connection is encrypted."""
    http_headers: Annotated[list[HttpHeader], Atomic(), Field(max_length=32)] = []
    """Headers to send."""
    timeout_seconds: Annotated[int, Field(ge=1, le=86400)] | None = None
    """How long it may take; without it, 300 seconds."""


class Hook(Model):
    """Something done at a turn of the machine's life."""

    __rules__ = (
        Rule("has(self.exec) != has(self.httpGet)", "needs exactly one of exec and httpGet"),
    )

    exec: ExecAction | None = None
    """Run a program."""
    http_get: HttpGetAction | None = None
    """Send a request."""


class Lifecycle(Model):
    """What is done when the machine has started and before it stops."""

    pre_start: Hook | None = None
    """Done once for each start, inside the guest; the machine is Ready only then."""
    pre_stop: Hook | None = None
    """Done before each stop; whatever comes of it, the machine stops then."""


class TemplateMetadata(Model):
    """What the machine is known by."""

    labels: Labels = {}
    """Labels, by which affinity rules of other machines find this one."""
    annotations: Annotated[dict[str, str], Field(max_length=64)] = {}
    """Notes that nothing is found by."""


class TemplateSpec(Model):
    """What the machine is made of and where it may run."""

    resources: MachineResources
    """How much of a host it takes."""
    image: Image
    """What its first disk is made from."""
    networks: Annotated[
        list[Network],
        ListMap("name"),
        Field(max_length=MAX_NETWORKS),
        Rule(
            "self.all(a, !has(a.mac) || self.exists_one(b, has(b.mac)"
            " && b.mac.lowerAscii() == a.mac.lowerAscii()))",
            "each network needs a MAC address of its own",
        ),
    ] = []
    """Its network interfaces."""
    volumes: Annotated[list[Volume], ListMap("name"), Field(max_length=MAX_VOLUMES)] = []
    """Its disks beside the first."""
    devices: Annotated[list[Device], Atomic(), Field(max_length=16)] = []
    """Hardware handed to it."""
    user_data: Annotated[str, Field(max_length=65536)] | None = None
    """Cloud-init configuration; most of it counts at its first start only."""
    node_selector: Labels = {}
    """Labels that a host must have."""
    affinity: Affinity | None = None
    """What draws it to hosts and machines, or keeps it away from them."""
    tolerations: Annotated[list[Toleration], Atomic(), Field(max_length=64)] = []
    """Taints of hosts that do not keep it away."""
    lifecycle: Lifecycle | None = None
    """What is done when it has started and before it stops."""


class MachineTemplate(Model):
    """A machine to make."""

    metadata: TemplateMetadata = TemplateMetadata()
    """What it is known by."""
    spec: TemplateSpec
    """What it is made of."""
