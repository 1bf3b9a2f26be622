"""On which hosts a machine could go on running that was started on another, and on how many."""

import numpy as np
from numpy.typing import NDArray

from novacron.core.cpu import Cpu

__all__ = ["CpuIndex"]


class CpuIndex:
    """Rows by their CPU; there are few kinds of CPU, however many hosts."""

    def __init__(self) -> None:
        self._rows: dict[Cpu, set[int]] = {}
        self._named: dict[str, Cpu] = {}
        self._ratings: NDArray[np.float64] | None = None

    def change(self, row: int, old: Cpu | None, new: Cpu | None) -> None:
        """Give a row another CPU, or one that nobody knows."""
        if old == new:
            return
        self._ratings = None
        if old is not None:
            self._rows[old].discard(row)
            if not self._rows[old]:
                del self._rows[old], self._named[old.key]
        if new is not None:
            self._rows.setdefault(new, set()).add(row)
            self._named[new.key] = new

    def called(self, key: str) -> Cpu | None:
        """Return the CPU that a word stands for, if a host has it."""
        return self._named.get(key)

    def unable(self, cpu: Cpu, size: int) -> NDArray[np.bool_]:
        """Return the rows on which a guest that runs with a CPU could not go on."""
        mask = np.zeros(size, dtype=np.bool_)
        for there, rows in self._rows.items():
            if not there.can_take_over(cpu):
                mask[list(rows)] = True
        return mask

    def onward(self, size: int) -> NDArray[np.float64] | None:
        """Return the share of the other hosts that could take over; None if all are alike."""
        if len(self._rows) < 2:
            return None
        if self._ratings is None or self._ratings.size != size:
            self._ratings = np.zeros(size)
            others = sum(map(len, self._rows.values())) - 1
            for cpu, rows in self._rows.items():
                able = sum(len(there) for to, there in self._rows.items() if to.can_take_over(cpu))
                self._ratings[list(rows)] = (able - 1) / others
        return self._ratings
