"""When a row of answers to a probe means something: thresholds, as Kubernetes counts them. Pure."""

from dataclasses import dataclass
from datetime import timedelta

from novacron.runtime.resource import Object

__all__ = ["Pace", "Verdict"]


@dataclass(frozen=True, slots=True)
class Pace:
    """When a probe asks, and how long it waits for an answer."""

    delay: timedelta
    period: timedelta
    timeout: timedelta

    @classmethod
    def of(cls, probe: Object) -> "Pace":
        """Return the pace of a probe."""
        return cls(
            timedelta(seconds=probe.get("initialDelaySeconds") or 0),
            timedelta(seconds=probe.get("periodSeconds") or 10),
            timedelta(seconds=probe.get("timeoutSeconds") or 1),
        )


@dataclass(slots=True)
class Verdict:
    """What the answers so far say; ``holds`` changes only when enough of them agree."""

    successes: int
    failures: int
    holds: bool
    _row: int = 0
    _last: bool | None = None

    @classmethod
    def of(cls, probe: Object, *, holds: bool) -> "Verdict":
        """Return the verdict before the first answer."""
        return cls(probe.get("successThreshold") or 1, probe.get("failureThreshold") or 3, holds)

    def take(self, *, good: bool) -> bool:
        """Take in an answer; say whether the answers in a row now reach their threshold."""
        self._row = self._row + 1 if good == self._last else 1
        self._last = good
        if self._row < (self.successes if good else self.failures):
            return False
        self.holds = good
        return True
