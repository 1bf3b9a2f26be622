"""What a keeper is told: everything about one container, as plain data that travels as JSON.

Standard library only: the keepers of containers import it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

__all__ = ["Mount", "Order", "Root", "User"]


@dataclass(frozen=True, slots=True)
class Mount:
    """A place of this machine that the container sees somewhere."""

    source: str
    target: str
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Root:
    """What the container's root file system is made of, beside the machine's own programs.

    ``owned`` are directories that belong to the container's user; ``files`` are paths and
    their text.
    """

    programs: Sequence[str]
    links: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    owned: Sequence[str] = ()
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class User:
    """Who a process runs as, and what of root's power it keeps."""

    uid: int
    gid: int
    groups: Sequence[int] = ()
    capabilities: Sequence[int] = ()
    new_privileges: bool = True


@dataclass(frozen=True, slots=True)
class Order:
    """One run of one container. ``network`` is an open handle, or None for the machine's own."""

    directory: str
    attempt: int
    hostname: str
    command: Sequence[str]
    environment: Mapping[str, str]
    working_directory: str
    user: User
    root: Root
    mounts: Sequence[Mount]
    network: int | None = None

    def encode(self) -> bytes:
        """Return it as bytes that ``decode`` reads."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decode(cls, data: bytes) -> "Order":
        """Return what was encoded; ValueError when something is missing."""
        try:
            known = json.loads(data)
            user, root = User(**known.pop("user")), Root(**known.pop("root"))
            mounts = [Mount(**mount) for mount in known.pop("mounts")]
            return cls(user=user, root=root, mounts=mounts, **known)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"this is no order: {error}") from None
