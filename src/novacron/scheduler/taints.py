"""Which hosts keep a machine away by their taints, and which only ask it to stay away."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from novacron.core.affinity import Toleration
from novacron.core.taint import Taint

__all__ = ["REPELLING", "TaintIndex", "untolerated"]

# Taints with these effects keep new machines away; PreferNoSchedule only asks.
REPELLING = frozenset({"NoSchedule", "NoExecute"})


def untolerated(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> list[Taint]:
    """Return the taints that no toleration covers."""
    return [
        taint
        for taint in taints
        if not any(toleration.tolerates(taint) for toleration in tolerations)
    ]


class TaintIndex:
    """Rows by their taints: hosts that are tainted alike are judged once."""

    def __init__(self) -> None:
        self._rows: dict[tuple[Taint, ...], set[int]] = {}

    def change(self, row: int, old: tuple[Taint, ...], new: tuple[Taint, ...]) -> None:
        """Give a row other taints."""
        if old == new:
            return
        if old:
            self._rows[old].discard(row)
            if not self._rows[old]:
                del self._rows[old]
        if new:
            self._rows.setdefault(new, set()).add(row)

    def repelling(self, tolerations: Sequence[Toleration], size: int) -> NDArray[np.bool_]:
        """Return which rows keep a machine away."""
        mask = np.zeros(size, dtype=np.bool_)
        for taints, rows in self._rows.items():
            if any(taint.effect in REPELLING for taint in untolerated(taints, tolerations)):
                mask[list(rows)] = True
        return mask

    def asking(self, tolerations: Sequence[Toleration], size: int) -> NDArray[np.int64] | None:
        """Return how many taints of each row ask a machine to stay away; None if none does."""
        counts: NDArray[np.int64] | None = None
        for taints, rows in self._rows.items():
            found = untolerated(taints, tolerations)
            asking = sum(taint.effect not in REPELLING for taint in found)
            if asking:
                counts = np.zeros(size, dtype=np.int64) if counts is None else counts
                counts[list(rows)] = asking
        return counts
