"""Where machines were to go lately and did not get, so that another host is tried first."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from novacron.core.machine import Machine
from novacron.core.migration import CPU_INCOMPATIBLE
from novacron.core.move import MoveResult

__all__ = ["Attempts"]

REMEMBERED = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class _Failure:
    ended: datetime
    reason: str


@dataclass(slots=True)
class Attempts:
    """Moves that failed, by machine and target; a process that begins anew knows only the last."""

    _failed: dict[str, dict[str, _Failure]] = field(default_factory=dict)

    def note(self, machine: Machine, now: datetime) -> None:
        """Take note of how the last move of a machine ended, and forget what is long ago."""
        last = machine.last_move
        if last is not None and last.result is MoveResult.SUCCEEDED:
            self._failed.pop(machine.uid, None)
        elif last is not None and last.result is MoveResult.FAILED and last.target and last.ended:
            failure = _Failure(last.ended, last.reason)
            self._failed.setdefault(machine.uid, {})[last.target] = failure
        self._forget_before(now - REMEMBERED)

    def spared(self, uid: str) -> Iterator[frozenset[str]]:
        """Return which hosts to try last: all at first, then without those longest ago."""
        hosts = sorted(self._failed.get(uid, {}).items(), key=lambda each: each[1].ended)
        for number in range(len(hosts)):
            yield frozenset(host for host, _ in hosts[number:])

    def unmatched(self, uid: str) -> frozenset[str]:
        """Return the hosts that could not go on with the CPU that a guest was started with."""
        failed = self._failed.get(uid, {}).items()
        return frozenset(host for host, each in failed if each.reason == CPU_INCOMPATIBLE)

    def _forget_before(self, long_ago: datetime) -> None:
        for uid, hosts in list(self._failed.items()):
            recent = {host: each for host, each in hosts.items() if each.ended > long_ago}
            if recent:
                self._failed[uid] = recent
            else:
                del self._failed[uid]
