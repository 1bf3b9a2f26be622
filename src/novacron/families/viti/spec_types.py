"""What is wanted of a Machine: every field of the specification, upstream's, and a few of ours."""

from typing import Annotated, Literal

from pydantic import Field

from novacron.crd import Atomic, ListMap, ListSet, Model, Rule
from novacron.families.shared_types import Text
from novacron.families.snapshot_types import RestoreRequest, SnapshotPolicy, SnapshotRequest
from novacron.families.update_types import UpdateStrategy
from novacron.families.viti.disk_types import MAX_DISKS, Disk
from novacron.families.viti.domain_types import Domain
from novacron.families.viti.guest_types import CloudInit, Image, Iso, OperatingSystem, UserData
from novacron.families.viti.nic_types import MAX_NICS, Nic, SingleNetwork, apart
from novacron.families.viti.size_types import FlatCpu, Resources
from novacron.families.viti.spec_rules import SPEC_RULES
from novacron.families.viti.upstream_types import Backup, ProviderConfig

__all__ = ["MachineSpec", "MigrationPolicy"]

TemplateName = Annotated[
    str,
    Field(min_length=1, max_length=63),
    Rule(
        "self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
        "must be small, medium, large or the name of a MachineClass",
    ),
]


class MigrationPolicy(Model):
    """How the machine may be moved to another node."""

    allow_live_migration: bool = True
    """Whether it may be moved while it runs; if not, a node that is drained stops it."""


class MachineSpec(Model):
    """What is wanted of the machine."""

    __rules__ = SPEC_RULES

    template: TemplateName | None = None
    """How large it is: small, medium, large, or the name of a MachineClass. Without it, the
    MachineClass that is the default."""
    resources: Resources | None = None
    """What it has instead of what its template says."""
    disks: Annotated[
        list[Disk],
        ListMap("name"),
        Field(max_length=MAX_DISKS),
        Rule(
            "self.filter(disk, disk.?boot.orValue(false)).size() <= 1",
            "only one disk can have boot: take it off the others",
        ),
    ] = []
    """Changes to the template's disks by their names, and more disks."""
    networks: Annotated[list[Nic], ListMap("name"), Field(max_length=MAX_NICS), *apart()] = []
    """Its network interfaces; without any, one on the pod network."""
    boot_order: Annotated[
        list[Literal["disk", "network", "cdrom"]], ListSet(), Field(max_length=3)
    ] = []
    """What it tries to start from, in this order; without it, disk, then cdrom, then network where
    there is neither image nor install medium."""
    cloud_init: CloudInit | None = None
    """What cloud-init finds in the guest."""
    domain: Domain | None = None
    """Its virtual hardware."""

    running: bool = True
    """Whether the machine is to run."""
    update_strategy: UpdateStrategy = UpdateStrategy()
    """How a change that needs a restart is made."""
    migration_policy: MigrationPolicy = MigrationPolicy()
    """How it may be moved to another node."""
    image: Image | None = None
    """What the disk to boot from is filled with; without it, it is empty."""
    iso: Iso | None = None
    """An install medium."""
    snapshot_policy: SnapshotPolicy | None = None
    """When snapshots are taken by themselves, and what becomes of all when the machine goes."""
    snapshots: Annotated[list[SnapshotRequest], ListMap("name"), Field(max_length=64)] = []
    """Snapshots to take on demand, and to remove."""
    restore: RestoreRequest | None = None
    """The snapshot that the machine goes back to."""

    name: Annotated[str, Field(min_length=1, max_length=253)] | None = None
    """Upstream's; the machine is called by metadata.name, so this has no effect."""
    machine_class: TemplateName | None = None
    """Upstream's word for template; a MachineClass of this name counts before small, medium and
    large."""
    machine_type: Text | None = None
    """Upstream's; has no effect."""
    cpu: FlatCpu | None = None
    """Upstream's word for resources.cpu."""
    memory: (
        Annotated[
            int,
            Field(le=2**60 - 1),
            Rule(
                "self >= 1048576",
                "is in bytes and must be at least 1048576 (1Mi): use resources.memory.size to "
                "write 8Gi, or leave it out for what the template says",
            ),
        ]
        | None
    ) = None
    """Upstream's word for resources.memory.size, in bytes."""
    network: SingleNetwork | None = None
    """Upstream's word for networks: one interface."""
    os: OperatingSystem | None = None
    """Upstream's words for what is to run."""
    provider: Literal["kubevirt", "proxmox"] | None = None
    """Who is to make the machine. Those of proxmox are left to others; without it, kubevirt."""
    provider_config: ProviderConfig | None = None
    """Upstream's; has no effect."""
    ssh_keys: Annotated[
        list[Annotated[str, Field(max_length=8192)]], Atomic(), Field(max_length=64)
    ] = []
    """Public keys that may log in as the image's own user; cloud-init puts them there."""
    user_data: UserData | None = None
    """Upstream's word for cloudInit.userData."""
    tags: Annotated[dict[str, str], Field(max_length=64)] = {}
    """Upstream's; has no effect."""
    security_groups: Annotated[list[Text], Atomic(), Field(max_length=64)] = []
    """Upstream's; has no effect."""
    monitoring: bool | None = None
    """Upstream's; has no effect."""
    backup: Backup | None = None
    """Upstream's; has no effect: use snapshotPolicy."""
