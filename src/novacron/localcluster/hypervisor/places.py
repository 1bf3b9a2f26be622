"""Where a private libvirt daemon keeps what it owns.

libvirt's directories are compiled into it when it runs as root, so there it gets a view of the
file system of its own; an ordinary user's daemon is told by environment variables.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from novacron.localcluster.errors import LocalClusterError

__all__ = ["MOST_SOCKET_BYTES", "SEEN_SHARED", "Places"]

# A socket's address ends with a zero byte, and the kernel keeps 108.
MOST_SOCKET_BYTES = 107
VIEW = {
    "run": Path("/run/libvirt"),
    "lib": Path("/var/lib/libvirt"),
    "etc": Path("/etc/libvirt"),
    "log": Path("/var/log/libvirt"),
    "cache": Path("/var/cache/libvirt"),
}
# Where root's daemon sees the directory that it shares with others.
SEEN_SHARED = Path("/var/lib/libvirt/shared")
VARIABLES = {
    "run": "XDG_RUNTIME_DIR",
    "lib": "XDG_DATA_HOME",
    "etc": "XDG_CONFIG_HOME",
    "cache": "XDG_CACHE_HOME",
}
SHORT = Path("/tmp")  # noqa: S108 - only a link, which nobody but its owner can replace there


@dataclass(frozen=True, slots=True)
class Places:
    """The directory of one daemon."""

    directory: Path

    @property
    def socket(self) -> Path:
        """Return where the daemon listens."""
        return self.own("run") / "libvirt-sock"

    @property
    def pool(self) -> Path:
        """Return where an ordinary user's daemon keeps disks; root's has a path of its own view."""
        return self.directory / "pool"

    @property
    def alias(self) -> Path:
        """Return a short name of the directory.

        QEMU's sockets lie seventy characters below it and would not fit behind a user's home.
        """
        return SHORT / f"nova-{self.mark}"

    @property
    def mark(self) -> str:
        """Return what distinguishes this daemon from others on the machine."""
        return hashlib.sha256(str(self.directory).encode()).hexdigest()[:6]

    def own(self, part: str) -> Path:
        """Return libvirt's directory for running state, data, settings, logs or caches."""
        return self.directory / part / "libvirt"

    def view(self) -> dict[Path, Path]:
        """Return which of our directories root's daemon sees in place of the machine's."""
        return {self.own(part): target for part, target in VIEW.items()}

    def variables(self) -> dict[str, str]:
        """Return what an ordinary user's daemon is told."""
        return {variable: str(self.alias / part) for part, variable in VARIABLES.items()}

    def make(self) -> None:
        """Make the directories; nobody but the owner gets past the first one."""
        too_long = len(str(self.socket).encode()) - MOST_SOCKET_BYTES
        if too_long > 0:
            raise LocalClusterError(
                f"{self.directory} is {too_long} characters too long for a socket below it; "
                f"point NOVACRON_HOME at a shorter path"
            )
        for part in VIEW:
            self.own(part).mkdir(parents=True, exist_ok=True)
            # Guests run as another user and have to get to their disks.
            self.own(part).chmod(0o755)
        self.directory.chmod(0o700)
        (self.directory / "run").chmod(0o700)
        self.pool.mkdir(exist_ok=True)

    def make_alias(self) -> None:
        """Make the short name."""
        if self.alias.is_symlink() and self.alias.readlink() == self.directory:
            return
        self.remove_alias()
        try:
            self.alias.symlink_to(self.directory)
        except OSError as error:
            raise LocalClusterError(f"{self.alias} cannot be made: {error.strerror}") from error

    def remove_alias(self) -> None:
        """Remove the short name."""
        try:
            self.alias.unlink(missing_ok=True)
        except OSError as error:
            raise LocalClusterError(f"{self.alias} is not ours: {error.strerror}") from error
