"""A host: where machines can run, how much room it has and who may use it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from novacron.core.conditions import Condition
from novacron.core.cpu import Cpu
from novacron.core.devices import HostDevice
from novacron.core.errors import Unreachable
from novacron.core.eviction import OUT_OF_SERVICE, Eviction, evicting
from novacron.core.machine import Resources
from novacron.core.network import HostNetwork
from novacron.core.offer import Offer, OfferKind
from novacron.core.taint import Taint
from novacron.core.volume import KeptVolume

__all__ = [
    "OUT_OF_SERVICE",
    "ClassFacts",
    "DeclaredHost",
    "Drain",
    "Host",
    "HostFacts",
    "HostReport",
    "NodeMarks",
    "NumaCell",
    "Overcommit",
    "StorageFacts",
    "StorageRoom",
    "Taint",
]

# The label that rules of "together" and "apart" name when they mean one host.
HOSTNAME = "kubernetes.io/hostname"


@dataclass(frozen=True, slots=True)
class Overcommit:
    """How many times over each resource may be promised; memory and disk by default once."""

    cpu: float = 1.0
    memory: float = 1.0
    disk: float = 1.0

    def of(self, capacity: Resources) -> Resources:
        """Return what may be promised of this capacity, rounded down."""
        return Resources(
            int(capacity.vcpus * self.cpu),
            int(capacity.memory_mib * self.memory),
            int(capacity.disk_mib * self.disk),
        )


@dataclass(frozen=True, slots=True)
class StorageFacts:
    """One place for disks."""

    name: str
    capacity_mib: int
    available_mib: int


@dataclass(frozen=True, slots=True)
class ClassFacts:
    """The place that a storage class is on a host, as it is measured.

    ``foreign_mib`` is what others took there than machines and kept volumes. Hosts that tell the
    same ``storage`` see the same place. ``trouble`` says why nothing of it can be used.
    """

    name: str
    capacity_mib: int
    foreign_mib: int = 0
    storage: str = ""
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class StorageRoom:
    """How much may be promised of a storage class; all who tell the same id share it.

    The class without a name is the host's own storage. ``trouble`` is why there is nothing.
    """

    storage_class: str
    allocatable_mib: int
    id: str = ""
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class NumaCell:
    """CPUs and the memory that is near to them; CPUs as Linux writes them, such as 0-7,16-23."""

    node: int
    cpus: str
    memory_mib: int


@dataclass(frozen=True, slots=True)
class HostFacts:
    """What a driver says of a host it reaches; what it cannot tell is empty.

    ``networks`` are those that machines can be plugged into; None where any will do.
    ``storage_ids`` are what places for disks are known by that other hosts may see too,
    ``own_storage`` the one of its own storage, of which others took ``foreign_mib`` than machines
    and kept volumes. ``classes`` are the storage classes of which it knows how much there is.
    ``guest_cpu_model`` and ``guest_cpu_features`` are the CPU that machines see there: one that
    runs can move to a host whose guests see at least the same.
    """

    name: str
    capacity: Resources
    version: str = ""
    cpu_model: str = ""
    cpu_features: tuple[str, ...] = ()
    guest_cpu_model: str = ""
    guest_cpu_features: tuple[str, ...] = ()
    numa: tuple[NumaCell, ...] = ()
    machine_types: tuple[str, ...] = ()
    accelerator: str = ""
    storage: tuple[StorageFacts, ...] = ()
    devices: tuple[HostDevice, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    networks: tuple[HostNetwork, ...] | None = None
    kept_volumes: tuple[KeptVolume, ...] = ()
    storage_ids: frozenset[str] = frozenset()
    own_storage: str = ""
    foreign_mib: int = 0
    classes: tuple[ClassFacts, ...] = ()

    def kept_mib(self, storage_class: str | None = None) -> int:
        """Return how much of a class volumes take whose machines are gone; None is its own."""
        kept = (each for each in self.kept_volumes if each.storage_class == storage_class)
        return sum(each.size_mib for each in kept)

    def allocatable(self, overcommit: Overcommit) -> Resources:
        """Return what may be promised: what nobody has takes room all the same."""
        gone = self.kept_mib() + self.foreign_mib
        room = overcommit.of(self.capacity)
        return replace(room, disk_mib=max(room.disk_mib - gone, 0))

    def rooms(self, overcommit: Overcommit) -> tuple[StorageRoom, ...]:
        """Return what may be promised of each storage class."""
        return tuple(
            StorageRoom(
                each.name,
                max(
                    int(each.capacity_mib * overcommit.disk)
                    - self.kept_mib(each.name)
                    - each.foreign_mib,
                    0,
                ),
                each.storage,
                each.trouble,
            )
            for each in self.classes
        )


@dataclass(frozen=True, slots=True)
class NodeMarks:
    """What is known of a host by the node of the cluster that it also is."""

    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()


@dataclass(frozen=True, slots=True)
class Drain:
    """All machines are to leave the host, a few at a time; some only when they may be stopped."""

    stop_allowed: bool = False
    at_once: int = 2


@dataclass(frozen=True, slots=True)
class DeclaredHost:
    """A host as its owner declared it, with what was last written about it.

    ``settings`` is the section meant for its driver alone; nobody else reads it.
    """

    uid: str
    name: str
    driver: str
    endpoint: str | None = None
    credentials: str | None = None
    node: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    drain: Drain | None = None
    overcommit: Overcommit = Overcommit()
    deleting: bool = False
    generation: int = 0
    conditions: tuple[Condition, ...] = ()
    allocatable: Resources | None = None
    node_marks: NodeMarks = NodeMarks()
    devices: tuple[HostDevice, ...] = ()
    cpu: Cpu | None = None
    offers: frozenset[Offer] = frozenset()
    storage_ids: frozenset[str] = frozenset()
    evictions: tuple[Eviction, ...] = ()
    own_storage: str = ""
    rooms: tuple[StorageRoom, ...] = ()

    @property
    def is_fenced(self) -> bool:
        """Say whether somebody made sure that the host is off and stays so."""
        return any(taint.key == OUT_OF_SERVICE for taint in self.all_taints)

    @property
    def all_taints(self) -> tuple[Taint, ...]:
        """Its own taints and those of its node."""
        return (*self.taints, *self.node_marks.taints)

    @property
    def is_to_be_left(self) -> bool:
        """Say whether machines are to leave it: all of them, or those that do not tolerate it."""
        return bool(self.drain or self.is_fenced or evicting(self.all_taints))

    def can(self, capability: str) -> bool:
        """Say whether its driver can do something; one that was not asked yet may."""
        needed = Offer(OfferKind.CAPABILITY, capability)
        return not self.offers.isdisjoint((needed, needed.any))

    @property
    def kind(self) -> Offer:
        """What a machine needs of another host to go there from this one: the same driver."""
        return Offer(OfferKind.DRIVER, self.driver)

    @property
    def down_since(self) -> datetime | None:
        """Since when the host does not answer, or None when it does.

        One that answers with what is wrong with it is up, and its guests may well run.
        """
        ready = self._ready
        if ready is None or (ready.status, ready.reason) != ("False", Unreachable.reason):
            return None
        return ready.since

    @property
    def is_troubled(self) -> bool:
        """Whether the host was found not to do its work, be it silent or up."""
        return self._ready is not None and self._ready.status == "False"

    @property
    def _ready(self) -> Condition | None:
        return next((claim for claim in self.conditions if claim.type == "Ready"), None)

    def seen_by_scheduler(self) -> "Host":
        """Return it as the scheduler sees it: ready only once somebody reached it."""
        ready = self._ready
        is_ready = ready is not None and ready.status == "True" and self.allocatable is not None
        return Host(
            name=self.name,
            allocatable=self.allocatable or Resources(),
            # What its owner said of it counts more than what its node is called.
            labels={HOSTNAME: self.name, **self.node_marks.labels, **self.labels},
            taints=self.all_taints,
            unschedulable=self.unschedulable or self.deleting or self.drain is not None,
            ready=is_ready,
            why_not_ready="" if is_ready else (ready.message if ready else "not reached yet"),
            devices=self.devices,
            cpu=self.cpu,
            offers=self.offers | {self.kind},
            storage=self._storage(),
        )

    def _storage(self) -> tuple[StorageRoom, ...]:
        """Return what is promised of each storage, its own too where others may see it."""
        if not self.own_storage or self.allocatable is None:
            return self.rooms
        return (StorageRoom("", self.allocatable.disk_mib, self.own_storage), *self.rooms)


@dataclass(frozen=True, slots=True)
class HostReport:
    """What one round found out about a host; None where it could not be asked."""

    conditions: tuple[Condition, ...]
    facts: HostFacts | None
    allocatable: Resources | None
    machines: int | None
    rooms: tuple[StorageRoom, ...] = ()
    seen_at: datetime | None = None
    node_marks: NodeMarks | None = None
    capabilities: frozenset[str] | None = None
    evictions: tuple[Eviction, ...] = ()


@dataclass(frozen=True, slots=True)
class Host:
    """A host as the scheduler sees it: declared marks and known room."""

    name: str
    allocatable: Resources
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    ready: bool = True
    why_not_ready: str = ""
    devices: tuple[HostDevice, ...] = ()
    cpu: Cpu | None = None
    offers: frozenset[Offer] = frozenset()
    storage: tuple[StorageRoom, ...] = ()
