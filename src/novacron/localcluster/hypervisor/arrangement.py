"""How many hosts a local cluster has: this machine as the only one, or several joined into a fleet.

The only one is in the machine's own network. Hosts can be added and not taken away: guests may be
on them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from novacron.localcluster.errors import LocalClusterError
from novacron.localcluster.hypervisor.daemon import Hypervisor
from novacron.localcluster.hypervisor.fleet import Fleet, require_room
from novacron.workplace.files import write_private

__all__ = ["Arrangement"]


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The hosts that live below one state directory."""

    state: Path

    @property
    def count(self) -> int:
        """Return how many hosts there are, or will be when they are started."""
        return int(self._record.read_text()) if self._record.exists() else 1

    @property
    def hosts(self) -> Sequence[Hypervisor]:
        """Return the hosts, running or not."""
        return self._fleet.hosts if self.count > 1 else [self._only]

    def peer_uri(self, number: int) -> str | None:
        """Return how the other hosts reach a host, to send it guests; None where there are none."""
        return self._fleet.peer_uri(number) if self.count > 1 else None

    def require(self, count: int) -> None:
        """Raise unless there can be so many."""
        require_room(count)
        if count < self.count:
            raise LocalClusterError(
                f"this cluster has {self.count} hosts, and guests may be on each of them; "
                f"remove it with `novacron purge` to begin with {count}"
            )

    def start(self, count: int) -> bool:
        """Bring up so many hosts, or what is missing of them; say whether anything was."""
        self.require(count)
        if count == 1:
            return self._only.start()
        if self.count == 1:
            # Its guests have to leave the machine's own network; they start again in the new one.
            self._only.stop()
        if self.count != count:
            write_private(self._record, str(count))
        return self._fleet.start()

    def stop(self) -> bool:
        """End all guests and hosts; data stays. Say whether anything ran."""
        return self._fleet.stop() if self.count > 1 else self._only.stop()

    @property
    def _record(self) -> Path:
        return self.state / "fleet" / "count"

    @property
    def _only(self) -> Hypervisor:
        return Hypervisor(self.state / "hypervisor")

    @property
    def _fleet(self) -> Fleet:
        return Fleet(self.state / "fleet", self.count, first=self.state / "hypervisor")
