"""Host ``novacron.io/v1alpha1``: where machines run. A kind of ours, not of the specification."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from novacron.crd import (
    AGE,
    Atomic,
    Column,
    CustomResource,
    ListMap,
    ListSet,
    Model,
    PositiveQuantity,
    Rule,
    kind,
)
from novacron.families.novacron.host_facts_types import (
    HostCpu,
    HostDevice,
    HostNuma,
    HostStorage,
    HostStorageClass,
)
from novacron.families.novacron.host_move_types import HostDrain, LibvirtMigration
from novacron.families.novacron.network_types import HostNetwork, LibvirtNetwork
from novacron.families.novacron.simulation_types import Simulation
from novacron.families.novacron.volume_types import KeptVolume, StorageClassName
from novacron.families.shared_types import Amounts, Condition, Labels

__all__ = [
    "Host",
    "HostDrain",
    "HostNode",
    "HostOvercommit",
    "HostSpec",
    "HostStatus",
    "HostTaint",
    "Libvirt",
    "LibvirtMigration",
    "LibvirtStorageClass",
    "NodeName",
    "SecretName",
]

Factor = Annotated[float, Rule("self >= 0.1 && self <= 100.0", "must be a number from 0.1 to 100")]


class HostTaint(Model):
    """A mark that keeps machines away unless they tolerate it."""

    key: Annotated[str, Field(min_length=1, max_length=317)]
    """What it is about."""
    value: Annotated[str, Field(max_length=63)] | None = None
    """More about it."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
    """NoSchedule and NoExecute keep new machines away, PreferNoSchedule if others will do. With
    NoExecute machines that run there and do not tolerate it move away while they run; those that
    cannot stay and say so. None is stopped."""


class HostEviction(HostTaint):
    """A taint that has machines leave."""

    since: datetime
    """Since when it is known."""


class HostOvercommit(Model):
    """How many times over each resource may be promised."""

    cpu: Factor = 1.0
    """Times the CPUs."""
    memory: Factor = 1.0
    """Times the memory."""
    disk: Factor = 1.0
    """Times the disk space."""


class LibvirtStorageClass(Model):
    """Which storage pool of the host a storage class is."""

    name: StorageClassName
    """What volumes ask for."""
    pool: Annotated[str, Field(min_length=1, max_length=253)]
    """The storage pool, a directory; its owner makes it."""
    shared: bool | None = None
    """Whether other hosts see the same storage under the same class; without it, not."""


class Libvirt(Model):
    """What of a libvirt host is used."""

    __rules__ = (
        Rule(
            "!has(self.storageClasses)"
            " || self.storageClasses.all(each, each.pool != self.storagePool)",
            "a storage class needs a pool of its own: volumes without a class are in storagePool",
            field_path=".storageClasses",
        ),
    )

    storage_pool: Annotated[str, Field(min_length=1, max_length=253)] = "novacron"
    """The storage pool for images and disks, a directory; made if it does not exist."""
    storage_path: (
        Annotated[
            str, Field(max_length=4096), Rule("self.startsWith('/')", "must be an absolute path")
        ]
        | None
    ) = None
    """Where on the host the pool is made if it does not exist; needed for qemu:///session."""
    network: Annotated[str, Field(min_length=1, max_length=50)] | None = None
    """The libvirt network that machines are plugged into, made with DHCP if it does not exist, or
    user for user-mode networking. Without it, novacron, and user for qemu:///session."""
    image_cache: PositiveQuantity = "50Gi"
    """How much room images may take; beyond that those go that no disk is on top of, the least
    recently used first."""
    networks: Annotated[dict[str, LibvirtNetwork], Field(max_length=64)] = {}
    """What else machines can be plugged into, by the names that their networks have. Without an
    entry of its own, default is the network above."""
    storage_classes: Annotated[
        list[LibvirtStorageClass], ListMap("name"), Field(max_length=64)
    ] = []
    """Which pool each storage class is that volumes may ask for."""
    cpu_model: (
        Annotated[
            str,
            Field(max_length=63),
            Rule("self.matches('^[A-Za-z0-9_.-]+$')", "must be one word, such as Nehalem"),
        ]
        | None
    ) = None
    """The CPU that machines see, by libvirt's name for it, where hosts differ and machines are to
    move between them. Without it, as much of the host's own as can be; emulated, qemu64."""
    migration: LibvirtMigration | None = None
    """How machines come to this host from others."""


class SecretName(Model):
    """A Secret in the operator's namespace."""

    name: Annotated[str, Field(min_length=1, max_length=253)]
    """Its name."""


class NodeName(Model):
    """A Node of the cluster."""

    name: Annotated[str, Field(min_length=1, max_length=253)]
    """Its name."""


_LIBVIRT_URI = "^qemu([+](unix|tls|ssh))?://[^ /?]*/(system|session)([?][^ ]*)?$"


class HostSpec(Model):
    """What the host is and who may use it."""

    __rules__ = (
        Rule(
            "self.driver != 'libvirt' || has(self.endpoint)",
            "driver libvirt needs an endpoint such as qemu:///system",
            field_path=".endpoint",
            reason="FieldValueRequired",
        ),
        Rule(
            "self.driver != 'libvirt' || !has(self.endpoint)"
            f" || self.endpoint.matches('{_LIBVIRT_URI}')",
            "must be a libvirt URI: qemu:///system, qemu:///session, qemu+tls://host/system, "
            "qemu+ssh://user@host/system, or one of them with ?socket=/path",
            field_path=".endpoint",
        ),
        Rule(
            "self.driver != 'libvirt' || !has(self.endpoint)"
            " || !self.endpoint.matches('[?&](no_verify|known_hosts_verify|command)=')",
            "the host's identity is always checked: no_verify, known_hosts_verify and command "
            "cannot be given",
            field_path=".endpoint",
            reason="FieldValueForbidden",
        ),
        Rule(
            "self.driver != 'kubevirt' || !has(self.endpoint) || self.endpoint == 'kubevirt://'",
            "a kubevirt cluster that is not the operator's own is reached by credentialsSecret: "
            "leave endpoint out",
            field_path=".endpoint",
            reason="FieldValueForbidden",
        ),
        Rule(
            "self.driver != 'simulation' || has(self.simulation)",
            "driver simulation needs simulation with the capacity of the host",
            field_path=".simulation",
            reason="FieldValueRequired",
        ),
    )

    driver: Literal["simulation", "libvirt", "kubevirt"]
    """Which hypervisor it is; kubevirt is a whole cluster, which places machines on its nodes
    itself."""
    endpoint: Annotated[str, Field(max_length=2048)] | None = None
    """How it is reached: a libvirt URI; a simulated host and kubevirt need none."""
    credentials_secret: SecretName | None = None
    """Who we are to it: a Secret in the operator's namespace with ca.crt, tls.crt and tls.key for
    qemu+tls, ssh-privatekey and known_hosts for qemu+ssh, kubeconfig for a kubevirt cluster that
    is not the operator's own."""
    node_ref: NodeName | None = None
    """The Node of the cluster that this host is; its labels and taints then count too."""
    labels: Labels = {}
    """What machines choose it by."""
    taints: Annotated[list[HostTaint], ListMap("key", "effect"), Field(max_length=64)] = []
    """What keeps machines away from it."""
    unschedulable: bool = False
    """Whether it takes no new machines."""
    drain: HostDrain | None = None
    """Move all machines away, and take no new ones."""
    overcommit: HostOvercommit = HostOvercommit()
    """How many times over it may be promised."""
    simulation: Simulation | None = None
    """What a simulated host is like."""
    libvirt: Libvirt | None = None
    """What of a libvirt host is used."""


class HostNode(Model):
    """How the host's node is marked."""

    labels: dict[str, str] = {}
    """Its labels."""
    taints: Annotated[list[HostTaint], Atomic()] = []
    """Its taints."""


class HostStatus(Model):
    """What is known of the host."""

    conditions: Annotated[list[Condition], ListMap("type")] = []
    """What is so and what is not; Ready says whether it answers."""
    capacity: Amounts | None = None
    """What it has."""
    allocatable: Amounts | None = None
    """What may be promised to machines: the capacity times overcommit, without what kept volumes
    take of the disk, and others than machines."""
    storage_classes: Annotated[list[HostStorageClass], ListMap("name")] = []
    """What may be promised of each storage class of which the host knows how much there is."""
    machines: Annotated[int, Field(ge=0)] | None = None
    """How many machines it has."""
    capabilities: Annotated[list[str], ListSet()] = []
    """What its driver can do beyond making, starting, stopping and removing machines."""
    driver_version: str | None = None
    """What the hypervisor says it is."""
    versions: dict[str, str] = {}
    """The version of each part of the hypervisor."""
    accelerator: str | None = None
    """How guests run: KVM on the CPU itself, TCG emulated, which is many times slower."""
    cpu: HostCpu | None = None
    """What CPU it has."""
    numa: Annotated[list[HostNuma], ListMap("node")] = []
    """Which memory is near to which CPUs."""
    machine_types: Annotated[list[str], Atomic()] = []
    """The kinds of machine it can run."""
    storage: Annotated[list[HostStorage], ListMap("name")] = []
    """Where it keeps disks."""
    devices: Annotated[list[HostDevice], ListMap("address")] = []
    """Hardware it can hand to machines."""
    networks: Annotated[list[HostNetwork], ListMap("name")] = []
    """Networks that machines can be plugged into; none where any will do."""
    kept_volumes: Annotated[list[KeptVolume], ListMap("namespace", "id")] = []
    """Volumes whose machines are gone; they take room until somebody deletes them. The first
    hundred; what several hosts see is told of by the first of them."""
    storage_ids: Annotated[list[str], ListSet(), Field(alias="storageIDs")] = []
    """What places for disks are known by that other hosts may see too."""
    own_storage_id: Annotated[str | None, Field(alias="ownStorageID")] = None
    """What the place for disks without a storage class is known by, if others may see it too:
    hosts with the same have its room together."""
    evictions: Annotated[list[HostEviction], Atomic()] = []
    """Taints that have machines leave, and since when."""
    node: HostNode | None = None
    """How its node is marked, where it has one; what spec says counts more."""
    last_seen: datetime | None = None
    """When it last answered, as of the last change of this status."""
    observed_generation: Annotated[int, Field(ge=0)] | None = None
    """The metadata.generation that all this was found out for."""


@kind(
    group="novacron.io",
    version="v1alpha1",
    short=("nvhost",),
    scope="Cluster",
    categories=("novacron",),
    columns=(
        Column("Driver", ".spec.driver"),
        Column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
        Column("CPU", ".status.capacity.cpu", "integer"),
        Column("Memory", ".status.capacity.memory"),
        Column("Machines", ".status.machines", "integer"),
        Column("Cordoned", ".spec.unschedulable", "boolean"),
        AGE,
        Column("Disk", ".status.capacity.disk", priority=1),
        Column("Reason", '.status.conditions[?(@.type=="Ready")].reason', priority=1),
        Column("Accelerator", ".status.accelerator", priority=1),
        Column("Version", ".status.driverVersion", priority=1),
    ),
)
class Host(CustomResource):
    """A place where machines run, reached by a driver."""

    spec: HostSpec
    """What the host is and who may use it."""
    status: HostStatus | None = None
    """What is known of the host."""
