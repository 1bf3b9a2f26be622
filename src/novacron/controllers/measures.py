"""Which measurements of machines are worth a look."""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field

from novacron.core.machine import Usage
from novacron.core.usage import noticeably_differs

__all__ = ["Measures"]


# What a guest uses while it starts says little about it, and would have to be written twice.
TELLING = 4


@dataclass(slots=True)
class Measures:
    """Remembers how often the use of each on a host was measured, and what was last told."""

    _times: dict[str, int] = field(default_factory=dict)
    _told: dict[str, Usage] = field(default_factory=dict)

    def news(self, measured: Mapping[str, Usage | None], told: Set[str]) -> frozenset[str]:
        """Return of whom there is something to tell; those of ``told`` are looked at anyway.

        Not of those that have hardly begun to be measured.
        """
        uses = {uid: usage for uid, usage in measured.items() if usage is not None}
        self._times = {uid: min(self._times.get(uid, 0) + 1, TELLING) for uid in uses}
        news = frozenset(
            uid
            for uid, usage in uses.items()
            if self._times[uid] == TELLING and noticeably_differs(self._told.get(uid), usage)
        )
        kept = {uid: usage for uid, usage in self._told.items() if uid in uses}
        self._told = kept | {uid: uses[uid] for uid in (news | told) & uses.keys()}
        return news
