"""A network of its own for a daemon, so that several on one machine do not meet."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from novacron.localcluster.errors import LocalClusterError
from novacron.localcluster.hypervisor.launch import program
from novacron.workplace.files import write_private

__all__ = ["NetworkNamespace", "ip"]

NAMED = Path("/run/netns")


@dataclass(frozen=True, slots=True)
class NetworkNamespace:
    """A named network namespace; the record says that it was made here."""

    name: str
    record: Path

    def make(self) -> None:
        """Make it unless it exists."""
        if (NAMED / self.name).exists():
            return
        write_private(self.record, self.name)
        ip("netns", "add", self.name)
        ip("-netns", self.name, "link", "set", "lo", "up")

    def remove(self) -> None:
        """Remove it if it was made here."""
        if self.record.exists():
            if (NAMED / self.name).exists():
                ip("netns", "delete", self.name)
            self.record.unlink()


def ip(*arguments: str) -> None:
    """Change something of a network."""
    done = subprocess.run([program("ip"), *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip() or "it said nothing"
        raise LocalClusterError(f"ip {' '.join(arguments)} failed: {said}")
