"""Several hosts on one machine that exchange guests: a private libvirt daemon each.

Root's hosts have a network, a view of the file system and a name each, and share an Ethernet; an
ordinary user's share the machine's loopback, and are two at most. Beside its own disks each host
has a storage pool in a directory that all of them see.
"""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import timedelta
from pathlib import Path

from novacron.localcluster.errors import LocalClusterError
from novacron.localcluster.hypervisor.daemon import GUEST_GRACE, Hypervisor
from novacron.localcluster.hypervisor.membership import SEEN_CERTIFICATES, Membership
from novacron.localcluster.hypervisor.network_file import network_xml, write_network
from novacron.localcluster.hypervisor.places import SEEN_SHARED, Places
from novacron.localcluster.hypervisor.segment import GUEST_BRIDGE, Segment
from novacron.localcluster.hypervisor.virsh import Virsh
from novacron.localcluster.pki import Authority, KeyPair
from novacron.workplace.files import private_directory

__all__ = ["SHARED_POOL", "Fleet", "require_room"]

MOST_OF_A_USER = 2
SHARED_POOL = "shared"
# Each host has an address: at 127.0.0.1 itself libvirt refuses to take guests in.
LOOPBACK = "127.0.0.10"
# Below those that the kernel gives out by itself; each fleet of a user begins elsewhere.
FIRST_PORT, PORTS, RANGES = 20000, 50, 200
TLS_PORT = 16514


def require_room(count: int, *, privileged: bool | None = None) -> None:
    """Raise unless there can be so many hosts; without a word, for whoever asks."""
    privileged = os.geteuid() == 0 if privileged is None else privileged
    if not privileged and count > MOST_OF_A_USER:
        raise LocalClusterError(
            f"without root there can be {MOST_OF_A_USER} hosts and not {count}, because they need "
            f"networks of their own; run this as root, or ask for {MOST_OF_A_USER}"
        )


@dataclass(frozen=True)
class Fleet:
    """Hosts numbered from one; the first may live in a directory of its own choice."""

    directory: Path
    count: int
    _: KW_ONLY
    first: Path | None = None
    privileged: bool = field(default_factory=lambda: os.geteuid() == 0)

    @property
    def hosts(self) -> Sequence[Hypervisor]:
        """Return the hosts, running or not."""
        return [self._host(number) for number in range(1, self.count + 1)]

    @property
    def authority(self) -> Authority:
        """Return who says which hosts, and which callers, belong here."""
        return Authority(self.directory / "pki", f"novacron-fleet-{self._mark}")

    @property
    def segment(self) -> Segment:
        """Return the network of root's hosts."""
        return Segment(self.directory)

    def tls_uri(self, number: int) -> str:
        """Return how a host of root's is reached by whoever has a certificate."""
        return f"qemu+tls://{self.segment.address(number)}:{TLS_PORT}/system"

    def peer_uri(self, number: int) -> str:
        """Return how the daemons of the other hosts reach a host, to send it guests."""
        if not self.privileged:
            near = self._host(number).peer_uri
            assert near is not None
            return near
        return f"{self.tls_uri(number)}?pkipath={SEEN_CERTIFICATES}"

    def caller(self) -> KeyPair:
        """Return a certificate with which a program is let in."""
        return self.authority.client("caller", "novacron")

    def start(self) -> bool:
        """Bring up what is missing; say whether anything was."""
        require_room(self.count, privileged=self.privileged)
        private_directory(self.directory)
        (self.directory / "shared").mkdir(exist_ok=True)
        # What guests write there is another user's.
        (self.directory / "shared").chmod(0o777 if self.privileged else 0o700)
        missing = self.segment.make() if self.privileged else False
        return any([missing, *(self.start_host(number) for number in self._numbers)])

    def start_host(self, number: int) -> bool:
        """Bring up one host, connect it, and have what guests need on it."""
        host = self._host(number)
        if self.privileged and host.namespace:
            host.make_namespace()
            self.segment.plug(host.namespace, number)
            if host.running() is None:
                # Whoever is quick would otherwise make or start another one of this name.
                settings = Places(host.directory).own("etc")
                write_network(settings, host.network, GUEST_BRIDGE)
        started = host.start()
        virsh = Virsh(host.uri)
        virsh.have_pool(SHARED_POOL, self._seen_shared)
        if self.privileged:
            virsh.have_network(host.network, network_xml(host.network, GUEST_BRIDGE))
        return started

    def stop(self, grace: timedelta = GUEST_GRACE) -> bool:
        """End everything; data stays. Say whether anything ran."""
        if not self.directory.exists() or (self.privileged and not self.segment.recorded()):
            return False
        ran = [host.stop(grace) for host in self.hosts]
        return any([*ran, self.privileged and self.segment.remove()])

    @property
    def _numbers(self) -> range:
        return range(1, self.count + 1)

    @property
    def _mark(self) -> str:
        return hashlib.sha256(str(self.directory.absolute()).encode()).hexdigest()[:6]

    @property
    def _seen_shared(self) -> Path:
        return SEEN_SHARED if self.privileged else self.directory / "shared"

    def _host(self, number: int) -> Hypervisor:
        return Hypervisor(
            self._place(number),
            namespace=f"nova-{self._mark}-{number}" if self.privileged else None,
            privileged=self.privileged,
            membership=self._membership(number),
        )

    def _place(self, number: int) -> Path:
        return self.first if number == 1 and self.first else self.directory / str(number)

    def _membership(self, number: int) -> Membership:
        return Membership(
            hostname=f"nova-{self._mark}-{number}" if self.privileged else "localhost",
            address=self.segment.address(number) if self.privileged else f"{LOOPBACK}{number}",
            ports=self._ports(number),
            shared=self.directory / "shared",
            # As the first one calls it when it is alone, so that its guests find it again.
            network=Hypervisor(self._place(1), privileged=self.privileged).network,
            authority=self.authority,
        )

    def _ports(self, number: int) -> range:
        first = FIRST_PORT + int(self._mark, 16) % RANGES * PORTS
        begin = first + (number - 1) * (PORTS // MOST_OF_A_USER)
        return range(begin, begin + PORTS // MOST_OF_A_USER)
