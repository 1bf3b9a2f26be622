"""Which hosts carry a label, as masks over the rows of the host table."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from novacron.core.affinity import Requirement

__all__ = ["NOWHERE", "LabelIndex"]

Label = tuple[str, str]
Mask = NDArray[np.bool_]

# Enough for the selectors in everyday use; a selector per host (hostname=…) must not keep a
# mask per host.
MASKS_KEPT = 256
NOWHERE = -1


class LabelIndex:
    """Finds the rows that carry a label.

    A row's change costs what its labels are; a mask is built when first asked for and kept
    until a row gains or loses that label.
    """

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, set[int]]] = {}
        self._masks: dict[Label, Mask] = {}
        self._meeting: dict[Requirement, Mask] = {}
        self._topologies: dict[str, NDArray[np.int64]] = {}

    def change(self, row: int, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        """Give a row other labels."""
        if old == new:
            return
        before, after = set(old.items()), set(new.items())
        for key, value in before - after:
            rows = self._rows[key][value]
            rows.discard(row)
            if not rows:
                del self._rows[key][value]
            self._masks.pop((key, value), None)
        for key, value in after - before:
            self._rows.setdefault(key, {}).setdefault(value, set()).add(row)
            self._masks.pop((key, value), None)
        self._forget({key for key, _ in before ^ after})

    def _forget(self, keys: set[str]) -> None:
        for key in keys:
            self._topologies.pop(key, None)
            if not self._rows[key]:
                del self._rows[key]
        for requirement in [each for each in self._meeting if each.key in keys]:
            del self._meeting[requirement]

    def lacking(self, selector: Mapping[str, str], size: int) -> Mask:
        """Return which of the table's rows lack any of the selector's labels."""
        lacking = np.zeros(size, dtype=np.bool_)
        for label in selector.items():
            lacking |= self._lacking(label, size)
        return lacking

    def _lacking(self, label: Label, size: int) -> Mask:
        mask = self._masks.get(label)
        if mask is None or mask.size != size:
            mask = np.ones(size, dtype=np.bool_)
            mask[list(self._rows.get(label[0], {}).get(label[1], ()))] = False
            if len(self._masks) >= MASKS_KEPT:
                self._masks.clear()
            self._masks[label] = mask
        return mask

    def meeting(self, requirement: Requirement, size: int) -> Mask:
        """Return which rows meet a demand; the mask is kept, so it is only for reading."""
        mask = self._meeting.get(requirement)
        if mask is None or mask.size != size:
            mask = np.full(size, requirement.met_by(None), dtype=np.bool_)
            for value, rows in self._rows.get(requirement.key, {}).items():
                mask[list(rows)] = requirement.met_by(value)
            if len(self._meeting) >= MASKS_KEPT:
                self._meeting.clear()
            self._meeting[requirement] = mask
        return mask

    def topology(self, key: str, size: int) -> NDArray[np.int64]:
        """Return a number for each row, equal where the label is, and NOWHERE without it."""
        numbers = self._topologies.get(key)
        if numbers is None or numbers.size != size:
            numbers = np.full(size, NOWHERE, dtype=np.int64)
            for number, rows in enumerate(self._rows.get(key, {}).values()):
                numbers[list(rows)] = number
            self._topologies[key] = numbers
        return numbers
