"""When a container that ended is started again: at once the first time, then ever later. Pure."""

from dataclasses import dataclass
from datetime import timedelta

__all__ = ["Backoff", "restarts"]

FIRST_PAUSE = timedelta(seconds=10)
LONGEST_PAUSE = timedelta(minutes=5)
# A run that lasted this long was a good one: what came before is forgotten.
GOOD_RUN = timedelta(minutes=10)


def restarts(policy: str, exit_code: int) -> bool:
    """Say whether a container that ended so is to be started again."""
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


@dataclass(slots=True)
class Backoff:
    """Counts the ends of one container."""

    ends: int = 0

    def pause_after(self, lasted: timedelta) -> timedelta:
        """Return how long after its end a run that lasted so long is followed by the next."""
        if lasted >= GOOD_RUN:
            self.ends = 0
        self.ends += 1
        if self.ends == 1:
            return timedelta()
        return min(FIRST_PAUSE * 2.0 ** min(self.ends - 2, 10), LONGEST_PAUSE)
