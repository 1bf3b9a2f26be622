"""One libvirt host as its owner declared it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from shlex import join
from urllib.parse import urlsplit

__all__ = ["Bridged", "ClassPool", "Credentials", "LibvirtHost"]

# What a Secret holds, by its keys; read whenever a connection is made.
Credentials = Callable[[], Awaitable[Mapping[str, bytes]]]

DEFAULT_POOL_PATH = "/var/lib/libvirt/novacron"


@dataclass(frozen=True, slots=True)
class Bridged:
    """What the name of a network means on a host: a bridge of the kernel's or of Open vSwitch."""

    type: str
    bridge: str = ""
    vlan: int | None = None


@dataclass(frozen=True, slots=True)
class ClassPool:
    """The pool that a storage class is, and whether other hosts see the same one."""

    pool: str
    shared: bool = False


@dataclass(frozen=True, slots=True)
class LibvirtHost:
    """How a host is reached and what of it is ours to use.

    ``network`` is a libvirt network by name; None is user-mode networking, which needs no rights
    and lets nobody in. ``networks`` are those that machines know by a name of their own.
    ``image_cache_bytes`` is how much room images may take that no disk is on top of; None is as
    much as there is. ``disk_overcommit`` is how many times over storage may be promised: disks take
    room as they are written to. ``cpu_model`` is the CPU that guests see; without it, as much of
    the host's own as can be. The ``migration`` fields say how other hosts reach this one, and
    whether it has certificates with which machines travel encrypted.
    """

    name: str
    uri: str
    pool: str = "novacron"
    pool_path: str | None = None
    network: str | None = None
    image_cache_bytes: int | None = None
    networks: Mapping[str, Bridged] = field(default_factory=dict)
    storage_classes: Mapping[str, ClassPool] = field(default_factory=dict)
    disk_overcommit: float = 1.0
    cpu_model: str | None = None
    migration_uri: str | None = None
    migration_address: str | None = None
    migration_tls: bool = False

    @property
    def reached_by_hosts(self) -> str | None:
        """Return how other hosts reach this one, to send it machines; None where nobody said."""
        parts = urlsplit(self.uri)
        named = parts.scheme in ("qemu+tls", "qemu+ssh") and parts.hostname
        return self.migration_uri or (self.uri if named else None)

    @property
    def is_session(self) -> bool:
        """Say whether it is a user's own daemon, which may not make bridges."""
        return urlsplit(self.uri).path == "/session"

    @property
    def is_near(self) -> bool:
        """Say whether it is reached by a socket of this machine, by which files can be handed."""
        parts = urlsplit(self.uri)
        return not parts.netloc and parts.scheme in ("qemu", "qemu+unix")

    def tunnel(self, address: str, port: int) -> str | None:
        """Return the command that brings a port of the host here, where there is one."""
        parts = urlsplit(self.uri)
        if parts.scheme != "qemu+ssh":
            return None
        user = f"{parts.username}@" if parts.username else ""
        beside = ["-p", str(parts.port)] if parts.port else []
        forward = f"{port}:{address}:{port}"
        return join(["ssh", "-N", "-L", forward, *beside, f"{user}{parts.hostname}"])

    def on_network(self, network: str | None) -> "LibvirtHost":
        """Return the host with machines plugged into another network."""
        return replace(self, network=network)

    @property
    def own_pool_path(self) -> str | None:
        """Return where the pool is made if it does not exist; None where nobody said."""
        return self.pool_path or (None if self.is_session else DEFAULT_POOL_PATH)
