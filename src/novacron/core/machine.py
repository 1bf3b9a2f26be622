"""A machine: what is wanted of it, what is handed to a driver, and what was seen of it."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum

from novacron.core.affinity import Affinity, Neighbour, Toleration
from novacron.core.change import Change
from novacron.core.cloud_init import Told
from novacron.core.conditions import Condition
from novacron.core.declaration import Declaration
from novacron.core.devices import HostDevice
from novacron.core.guest_facts import GuestFacts
from novacron.core.hardware import STANDARD, Hardware
from novacron.core.hooks import NO_HOOKS, Hooks, Ran
from novacron.core.image import NO_MEDIA, Import, Media, PullPolicy
from novacron.core.move import Move, MovePolicy, MoveReport, MoveRequest
from novacron.core.offer import Offer
from novacron.core.resources import Resources
from novacron.core.segment import Segment
from novacron.core.snapshot import NO_WISHES, SnapshotWishes
from novacron.core.volume import Access, SeenVolume, Volume, of_the_host
from novacron.core.wanted_device import WantedDevice

__all__ = [
    "GUEST_CRASHED",
    "GUEST_PAUSED",
    "GUEST_SUSPENDED",
    "FirstDisk",
    "Hindrance",
    "Holding",
    "Machine",
    "MachinePlan",
    "MachineRef",
    "Nic",
    "Observed",
    "Power",
    "Resources",
    "Usage",
]


# Why a guest that is there does not run.
GUEST_PAUSED = "GuestPaused"
GUEST_CRASHED = "GuestCrashed"
GUEST_SUSPENDED = "GuestSuspended"


class Power(StrEnum):
    """Whether a machine runs."""

    ON = "On"
    OFF = "Off"


@dataclass(frozen=True, slots=True)
class MachineRef:
    """Which machine, and where.

    The UID is the identity: whatever a driver makes carries it, so that work done before a
    crash is found again. Namespace and name are for people.
    """

    uid: str
    namespace: str
    name: str
    host: str


@dataclass(frozen=True, slots=True)
class FirstDisk:
    """Where a machine's first disk is kept and how; None leaves it to whoever makes it."""

    name: str = "root"
    storage_class: str | None = None
    access: Access | None = None
    block: bool | None = None
    bus: str | None = None


@dataclass(frozen=True, slots=True)
class Nic:
    """A network interface as it was asked for; no IPv4 address means DHCP.

    Without an IPv6 address it is what the network announces, or DHCP where that was asked for.
    Addresses are written with their prefix length. ``type`` is what the network has to be,
    ``segment`` where it is to be found, if whoever asks knows.
    """

    network: str
    address: str | None = None
    gateway: str | None = None
    address6: str | None = None
    gateway6: str | None = None
    mac: str | None = None
    dns_servers: tuple[str, ...] = ()
    dns_search: tuple[str, ...] = ()
    type: str | None = None
    dhcp6: bool = False
    name: str = ""
    model: str | None = None
    segment: Segment | None = None

    @property
    def static(self) -> tuple[str, ...]:
        """The addresses that were written down for it, without their prefix lengths."""
        return tuple(each.partition("/")[0] for each in (self.address, self.address6) if each)

    @property
    def plain(self) -> bool:
        """Say whether a guest that was told nothing would set it up as it was asked for."""
        told = (self.address, self.address6, self.gateway, self.gateway6)
        return not any((*told, self.dns_servers, self.dns_search, self.dhcp6))


@dataclass(frozen=True, slots=True)
class MachinePlan:
    """All that a driver needs to make a machine or change one.

    The disk of ``resources`` is the first one. ``volumes`` of None leaves those it has alone.
    ``start`` says that it will be started as soon as it is made: a driver that can do both in one
    may. ``may_move`` and ``only_encrypted`` are for those that move machines themselves.
    """

    ref: MachineRef
    resources: Resources
    image: str
    nics: tuple[Nic, ...] = ()
    user_data: str | None = None
    checksum: str | None = None
    pull: PullPolicy = PullPolicy.IF_NOT_PRESENT
    volumes: tuple[Volume, ...] | None = ()
    devices: tuple[HostDevice, ...] = ()
    hardware: Hardware = STANDARD
    first_disk: FirstDisk = FirstDisk()
    told: Told | None = None
    declared_by: Declaration | None = None
    media: Media = NO_MEDIA
    start: bool = False
    may_move: bool = True
    only_encrypted: bool = False

    @property
    def recipe(self) -> str:
        """A short word that changes with whatever of the plan can be changed beside the size."""
        handed = tuple(device.address for device in self.devices)
        parts: tuple[object, ...] = (self.nics, handed) if handed else self.nics
        if self.hardware != STANDARD or self.told is not None:
            parts = (parts, self.hardware, self.told)
        if self.media.install is not None:
            parts = (parts, self.media.install)
        if not self.may_move:
            parts = (parts, "stays")
        if self.user_data:
            # With the machine's own, or who reads recipes could tell who has the same secret.
            parts = (parts, self.ref.uid, self.user_data)
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Usage:
    """What a guest really uses; None where the hypervisor cannot tell.

    ``disk_mib`` is of the first disk, ``volumes_mib`` of each volume by its name.
    """

    cpu_cores: float | None = None
    memory_mib: int | None = None
    disk_mib: int | None = None
    volumes_mib: tuple[tuple[str, int], ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Hindrance:
    """What keeps a machine from going on by itself, until somebody mends that."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Observed:
    """What the hypervisor says of one machine now.

    ``changing`` names the operation under way, if any: then the rest may be about to change,
    in ``due`` from now if the hypervisor can tell; ``progress`` says how far it is.
    ``abandoned`` is a creation that was begun and that nobody is at work on: it goes on when it is
    ordered again.

    ``resources`` is what the machine has; ``after_restart`` what it will have once it was off,
    where that is different, and ``awaits_restart`` names all that does. ``pending`` is all that was
    asked for and has not taken effect, by what it takes. ``recipe`` is the plan's
    word for what the machine is set up with, where the hypervisor keeps it. ``drifted`` says what
    somebody else changed about it, and ``ended`` why it is off if it was on. ``snapshots`` counts
    those that bind it to its host. ``ran`` is what was done for the guest since it was started, and
    ``under_way`` names what was begun for it and has not ended as far as anybody saw.
    ``immovable`` says what about it keeps it from moving while it runs. ``cpu`` is the word for
    the one that a running guest sees, where the hypervisor keeps it.

    ``first_volume`` is the first disk, where more is known of it than its size.
    ``hindered`` is what keeps it waiting, or has a guest that is there stand still.

    Where the hypervisor is a system of its own, ``node`` is where in it the machine runs, ``moved``
    its last move between nodes, ``unsure`` why nobody can tell at present how it is there,
    ``parts`` are what it says of things the machine consists of, and ``guest`` what it tells of
    the guest.
    """

    uid: str
    vm_id: str
    power: Power
    resources: Resources
    changing: str | None = None
    addresses: tuple[str, ...] = ()
    usage: Usage | None = None
    live_migratable: bool = False
    immovable: str | None = None
    due: timedelta | None = field(default=None, compare=False)
    abandoned: bool = False
    after_restart: Resources | None = None
    awaits_restart: tuple[str, ...] = ()
    pending: tuple[Change, ...] = ()
    recipe: str | None = None
    drifted: str | None = None
    ended: str | None = None
    progress: str | None = field(default=None, compare=False)
    snapshots: int = 0
    ran: tuple[Ran, ...] = ()
    under_way: tuple[str, ...] = ()
    volumes: tuple[SeenVolume, ...] = ()
    cpu: str = ""
    first_volume: SeenVolume | None = None
    imports: tuple[Import, ...] = ()
    node: str | None = None
    moved: MoveReport | None = None
    unsure: Hindrance | None = None
    parts: tuple[Condition, ...] = ()
    hindered: Hindrance | None = None
    guest: GuestFacts | None = None

    @property
    def configured(self) -> Resources:
        """What the machine is set to have, at the latest once it was off."""
        return self.after_restart or self.resources


@dataclass(frozen=True, slots=True)
class Holding:
    """What one machine holds of one host."""

    uid: str
    host: str
    resources: Resources
    devices: tuple[HostDevice, ...] = ()


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine as its owner declared it, with what was recorded about it so far.

    ``wanted`` is what it takes of a host, all volumes included, also those that were taken off it,
    of which ``detached_mib`` are on the host's own storage; ``awaiting_restart`` are the classes of
    those that its guest gets with a restart. ``host``, ``reserved`` and ``devices``
    are the placer's word, and ``placed_because`` its reason: no machine is made before they are
    recorded, and only what is reserved is ever asked of a driver. ``refused_hosts`` had no room for
    it after all; ``conditions`` and ``usage`` are what was last written.

    ``move`` is under way, or ``relocation`` where it is between nodes of one hypervisor;
    ``move_over`` says that the record of one that has ended is still to be taken away. Hosts of
    ``leftovers`` did not answer when the machine left them for good; ``unreached`` are those of
    them that it was only on its way to, so that nothing there can be taken for its disks.
    ``only_host`` and ``leaving`` narrow down where it may be placed, and so does ``keeps_cpu``: it
    goes on running with the CPU that it was started with, which ``guest_cpu`` is the word for.

    ``promised``: its host was only decided on, nobody wrote of it that it is there. ``unseen``: no
    host was ever seen to have it. ``abandoned``: it may be forgotten when it is deleted and out of
    reach. ``made_by`` tells its maker from whatever else its host's address may come to mean.
    """

    uid: str
    namespace: str
    name: str
    wanted: Resources
    image: str
    power: Power
    generation: int = 0
    seen_generation: int = 0
    deleting: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    host_selector: Mapping[str, str] = field(default_factory=dict)
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    wanted_devices: tuple[WantedDevice, ...] = ()
    needs: frozenset[Offer] = frozenset()
    nics: tuple[Nic, ...] = ()
    user_data: str | None = None
    checksum: str | None = None
    pull: PullPolicy = PullPolicy.IF_NOT_PRESENT
    hooks: Hooks = NO_HOOKS
    volumes: tuple[Volume, ...] = ()
    detached_mib: int = 0
    awaiting_restart: frozenset[str | None] = frozenset()
    live_migration_allowed: bool = True
    restart_allowed: bool = True
    restart_at_once: bool = False
    host: str | None = None
    promised: bool = False
    made_by: str = ""
    abandoned: bool = False
    unseen: bool = False
    reserved: Resources | None = None
    devices: tuple[HostDevice, ...] = ()
    placed_because: str = ""
    refused_hosts: frozenset[str] = frozenset()
    conditions: tuple[Condition, ...] = ()
    usage: Usage | None = None
    move_policy: MovePolicy = field(default_factory=MovePolicy)
    move_request: MoveRequest | None = None
    move_cancelled: bool = False
    move: Move | None = None
    relocation: Move | None = None
    move_over: bool = False
    last_move: MoveReport | None = None
    wishes_changed: bool = False
    leftovers: frozenset[str] = frozenset()
    unreached: frozenset[str] = frozenset()
    only_host: str | None = None
    leaving: str | None = None
    guest_cpu: str = ""
    keeps_cpu: bool = False
    snapshots: SnapshotWishes = NO_WISHES
    hardware: Hardware = STANDARD
    first_disk: FirstDisk = FirstDisk()
    told: Told | None = None
    declared_by: Declaration | None = None
    media: Media = NO_MEDIA

    @property
    def ref(self) -> MachineRef:
        """The reference drivers know it by; only a placed machine has one."""
        if self.host is None:
            raise ValueError(f"{self.namespace}/{self.name} has no host yet")
        return MachineRef(self.uid, self.namespace, self.name, self.host)

    def ref_on(self, host: str) -> MachineRef:
        """The reference by which the driver of another host knows it."""
        return MachineRef(self.uid, self.namespace, self.name, host)

    @property
    def neighbour(self) -> Neighbour:
        """What it is to the machines beside it."""
        return Neighbour(self.namespace, self.labels, self.affinity)

    def condition(self, name: str) -> Condition | None:
        """Return what was last written under a name."""
        return next((claim for claim in self.conditions if claim.type == name), None)

    @property
    def awaits_placer(self) -> bool:
        """Say whether a changed size was neither granted nor refused yet."""
        return self.reserved != self.wanted and self.seen_generation != self.generation

    def plan(self, seen: Observed | None = None) -> MachinePlan:
        """Return what a driver is asked for: never more than what is reserved.

        Disks that are not granted stay as they were seen.
        """
        reserved = self.reserved or self.wanted
        first_mib, volumes = self._disks(reserved, seen)
        return MachinePlan(
            ref=self.ref,
            resources=replace(reserved, disk_mib=first_mib, shares=()),
            image=self.image,
            nics=self.nics,
            user_data=self.user_data,
            checksum=self.checksum,
            pull=self.pull,
            volumes=volumes,
            devices=self.devices,
            hardware=self.hardware,
            first_disk=self.first_disk,
            told=self.told,
            declared_by=self.declared_by,
            media=self.media,
            start=self.power is Power.ON and self.snapshots.to_restore is None,
            may_move=self.live_migration_allowed,
            only_encrypted=self.move_policy.encrypted,
        )

    def _disks(
        self, reserved: Resources, seen: Observed | None
    ) -> tuple[int, tuple[Volume, ...] | None]:
        first_mib = self.wanted.disk_mib - of_the_host(self.volumes) - self.detached_mib
        if reserved.disk_mib >= self.wanted.disk_mib and self.wanted.shares_fit(reserved.shares):
            return first_mib, self.volumes
        if seen is not None:
            return seen.configured.disk_mib, None
        return min(first_mib, reserved.disk_mib), None
