"""Where machines were to go lately and did not get, so that another host is tried first."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from novacron.core.machine import Machine
from novacron.core.move import MoveResult

__all__ = ["Attempts"]

REMEMBERED = timedelta(minutes=10)


@dataclass(slots=True)
class Attempts:
    """Moves that failed, by machine and target; a process that begins anew knows only the last."""

    _failed: dict[str, dict[str, datetime]] = field(default_factory=dict)

    def note(self, machine: Machine, now: datetime) -> None:
        """Take note of how the last move of a machine ended, and forget what is long ago."""
        last = machine.last_move
        if last is not None and last.result is MoveResult.SUCCEEDED:
            self._failed.pop(machine.uid, None)
        elif last is not None and last.result is MoveResult.FAILED and last.target and last.ended:
            self._failed.setdefault(machine.uid, {})[last.target] = last.ended
        self._forget_before(now - REMEMBERED)

    def spared(self, uid: str) -> Iterator[frozenset[str]]:
        """Return which hosts to try last: all at first, then without those longest ago."""
        hosts = sorted(self._failed.get(uid, {}).items(), key=lambda each: each[1])
        for number in range(len(hosts)):
            yield frozenset(host for host, _ in hosts[number:])

    def _forget_before(self, long_ago: datetime) -> None:
        for uid, hosts in list(self._failed.items()):
            recent = {host: ended for host, ended in hosts.items() if ended > long_ago}
            if recent:
                self._failed[uid] = recent
            else:
                del self._failed[uid]
