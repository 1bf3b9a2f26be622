"""Free loopback ports, remembered so that a restarted cluster keeps its address."""

import json
import random
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from novacron.localcluster.errors import LocalClusterError
from novacron.workplace.files import write_private

__all__ = ["LOOPBACK", "Ports", "free_port", "is_free"]

LOOPBACK = "127.0.0.1"
# Below the range from which the kernel takes ports of outgoing connections (32768 and up):
# otherwise any connection could sit on a remembered port while the cluster is down.
RANGE = range(20000, 32000)
TRIES = 200


def is_free(port: int) -> bool:
    """Say whether a server could listen on the loopback port now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def free_port(taken: Iterable[int] = ()) -> int:
    """Return a loopback port that nobody listens on and that is not among the taken ones."""
    avoid = set(taken)
    for _ in range(TRIES):
        port = random.SystemRandom().choice(RANGE)
        if port not in avoid and is_free(port):
            return port
    raise LocalClusterError(f"no free loopback port between {RANGE.start} and {RANGE.stop}")


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports of named listeners, kept in a file."""

    path: Path

    def read(self) -> dict[str, int]:
        """Return the remembered ports; an unreadable file remembers nothing."""
        try:
            known = json.loads(self.path.read_text())
            return {str(name): int(port) for name, port in known.items()}
        except (OSError, ValueError, AttributeError, TypeError):
            return {}

    def claim(self, name: str, *, anew: bool = False) -> int:
        """Return the listener's remembered port if it is free, or else another one."""
        known = self.read()
        port = known.get(name)
        if port is not None and not anew and is_free(port):
            return port
        known[name] = free_port(known.values())
        write_private(self.path, json.dumps(known, indent=2, sort_keys=True))
        return known[name]
