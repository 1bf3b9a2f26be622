"""Which measurements of machines are worth a look."""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field

from novacron.core.machine import Usage
from novacron.core.usage import noticeably_differs

__all__ = ["Measures"]


@dataclass(slots=True)
class Measures:
    """Remembers whose use was measured on a host, and what was last told of each."""

    _measured: frozenset[str] = frozenset()
    _told: dict[str, Usage] = field(default_factory=dict)

    def news(self, measured: Mapping[str, Usage | None], told: Set[str]) -> frozenset[str]:
        """Return of whom there is something to tell; those of ``told`` are looked at anyway.

        Not of those that are measured for the first time: what a guest uses while it starts says
        little about it, and would have to be written twice.
        """
        uses = {uid: usage for uid, usage in measured.items() if usage is not None}
        news = frozenset(
            uid
            for uid, usage in uses.items()
            if uid in self._measured and noticeably_differs(self._told.get(uid), usage)
        )
        kept = {uid: usage for uid, usage in self._told.items() if uid in uses}
        self._told = kept | {uid: uses[uid] for uid in (news | told) & uses.keys()}
        self._measured = frozenset(uses)
        return news
