"""Which hosts carry a label, as masks over the rows of the host table."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

__all__ = ["LabelIndex"]

Label = tuple[str, str]

# Enough for the selectors in everyday use; a selector per host (hostname=…) must not keep a
# mask per host.
MASKS_KEPT = 256


class LabelIndex:
    """Finds the rows that carry a label.

    A row's change costs what its labels are; a mask is built when first asked for and kept
    until a row gains or loses that label.
    """

    def __init__(self) -> None:
        self._rows: dict[Label, set[int]] = {}
        self._masks: dict[Label, NDArray[np.bool_]] = {}

    def change(self, row: int, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        """Give a row other labels."""
        if old == new:
            return
        before, after = set(old.items()), set(new.items())
        for label in before - after:
            rows = self._rows[label]
            rows.discard(row)
            if not rows:
                del self._rows[label]
            self._masks.pop(label, None)
        for label in after - before:
            self._rows.setdefault(label, set()).add(row)
            self._masks.pop(label, None)

    def lacking(self, selector: Mapping[str, str], size: int) -> NDArray[np.bool_]:
        """Return which of the table's rows lack any of the selector's labels."""
        lacking = np.zeros(size, dtype=np.bool_)
        for label in selector.items():
            lacking |= self._lacking(label, size)
        return lacking

    def _lacking(self, label: Label, size: int) -> NDArray[np.bool_]:
        mask = self._masks.get(label)
        if mask is None or mask.size != size:
            mask = np.ones(size, dtype=np.bool_)
            mask[list(self._rows.get(label, ()))] = False
            if len(self._masks) >= MASKS_KEPT:
                self._masks.clear()
            self._masks[label] = mask
        return mask
