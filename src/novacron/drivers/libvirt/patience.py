"""How often guests are asked for addresses that they do not have yet, and may never have."""

import time
from collections.abc import Callable, Container
from dataclasses import dataclass, field, replace
from datetime import timedelta

from novacron.core.machine import Observed

__all__ = ["Patience"]

# Of the time that was waited already, how much longer the next wait may take.
SHARE = 0.1
# As often as all machines are looked at anyway.
LONGEST = timedelta(seconds=30)


@dataclass(slots=True)
class Patience:
    """Makes waits longer the longer they have lasted: a guest without DHCP waits for ever."""

    clock: Callable[[], float] = time.monotonic
    _since: dict[str, float] = field(default_factory=dict)

    def paced(self, seen: Observed) -> Observed:
        """Return how a machine was seen, with the time to look again; progress is always due."""
        if seen.due is None or seen.progress:
            self._since.pop(seen.uid, None)
            return seen
        now = self.clock()
        waited = now - self._since.setdefault(seen.uid, now)
        return replace(seen, due=max(seen.due, min(timedelta(seconds=waited * SHARE), LONGEST)))

    def forget_all_but(self, uids: Container[str]) -> None:
        """Forget machines that are gone."""
        self._since = {uid: since for uid, since in self._since.items() if uid in uids}
