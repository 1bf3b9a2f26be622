"""When each other process last showed a sign of life, on this process's own clock.

No two clocks are compared: what counts is how long a member's lease was seen unchanged here.
Pure: told of each look at the leases, asked afterwards.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import NamedTuple

__all__ = ["Sightings"]


class _Sighting(NamedTuple):
    version: str | None
    since: float


@dataclass(slots=True)
class Sightings:
    """The last change of each member's lease that was seen from here."""

    duration: timedelta
    _looked: float = 0.0
    _seen: dict[str, _Sighting] = field(default_factory=dict)

    def record(self, versions: Mapping[str, str | None], begun: float, ended: float) -> None:
        """Note one look: each identity's lease version, None for a lease that is not there.

        A change counts from the look's end, because it may have happened that late; silence
        counts up to its beginning, because what was answered may be that old.
        """
        self._looked = begun
        self._seen = {who: self._sighting(who, v, ended) for who, v in versions.items()}

    def _sighting(self, who: str, version: str | None, ended: float) -> _Sighting:
        known = self._seen.get(who)
        return known if known and known.version == version else _Sighting(version, ended)

    def silence(self, who: str) -> timedelta:
        """Return for how long an identity is known to have been silent."""
        known = self._seen.get(who)
        return timedelta(seconds=max(0.0, self._looked - known.since)) if known else timedelta()

    def expired(self, who: str) -> bool:
        """Say whether what this identity holds may be taken."""
        return self.silence(who) >= self.duration

    def unexpired(self) -> frozenset[str]:
        """Return the identities whose time is not up, there or not."""
        return frozenset(who for who in self._seen if not self.expired(who))

    def next_expiry(self) -> float | None:
        """Return when the first of them expires unless it shows a sign of life."""
        due = [self._seen[who].since for who in self.unexpired()]
        return min(due) + self.duration.total_seconds() if due else None
