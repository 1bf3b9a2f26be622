"""A network of its own for a daemon, so that several on one machine do not meet."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from novacron.localcluster.errors import LocalClusterError
from novacron.localcluster.hypervisor.launch import program
from novacron.workplace.files import write_private

__all__ = ["NetworkNamespace", "has_link", "ip"]

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
                self._cut_cables()
                ip("netns", "delete", self.name)
            self.record.unlink()

    def _cut_cables(self) -> None:
        # Connections that still have something to say keep a namespace for minutes, nameless and
        # with all that is in it, and answer whoever is at the other end.
        found = _run("-json", "-netns", self.name, "link", "show", "type", "veth").stdout
        # Of links of other kinds there is an entry with nothing in it.
        for name in (link.get("ifname") for link in json.loads(found or "[]")):
            if name:
                ip("-netns", self.name, "link", "delete", name)


def ip(*arguments: str) -> None:
    """Change something of a network."""
    done = _run(*arguments)
    if done.returncode:
        said = done.stderr.strip() or "it said nothing"
        raise LocalClusterError(f"ip {' '.join(arguments)} failed: {said}")


def has_link(namespace: str, link: str) -> bool:
    """Say whether there is a link of this name in a namespace."""
    return _run("-netns", namespace, "link", "show", link).returncode == 0


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [program("ip"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)
