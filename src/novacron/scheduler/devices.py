"""Which devices every host has free, and which of them a machine gets.

A device is named by its address on its host and belongs to one machine at a time, also while
its host is not declared or does not list it.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from novacron.core.devices import HostDevice
from novacron.core.wanted_device import WantedDevice

__all__ = ["DeviceBooks", "DeviceView"]

Amounts = NDArray[np.int64]
# The row of a machine that is placed already, and the addresses of what it holds there.
Own = tuple[int, frozenset[str]]

VIEWS_KEPT = 64


@dataclass(frozen=True, slots=True, eq=False)
class DeviceView:
    """For everything a machine asks for: how many each row has, and has free."""

    wanted: tuple[WantedDevice, ...]
    present: Amounts
    free: Amounts
    lacking: NDArray[np.bool_]


class _Kept:
    """What all rows have for one combination of wishes, brought up to date row by row."""

    def __init__(self, wanted: tuple[WantedDevice, ...], size: int, rows: Iterable[int]) -> None:
        self.wanted = wanted
        self.present, self.free = np.zeros((2, len(wanted), size), dtype=np.int64)
        self.lacking = np.ones(size, dtype=np.bool_)
        self.stale = set(rows)

    def set(self, row: int, devices: Sequence[HostDevice], left: Sequence[HostDevice]) -> None:
        for number, each in enumerate(self.wanted):
            self.present[number, row] = sum(each.is_met_by(device) for device in devices)
            self.free[number, row] = sum(each.is_met_by(device) for device in left)
        enough = all(self.free[n, row] >= each.count for n, each in enumerate(self.wanted))
        self.lacking[row] = not enough or _assign(self.wanted, left) is None


class DeviceBooks:
    """The devices of all rows. A look costs what has changed since the last one like it."""

    def __init__(self) -> None:
        self._present: dict[int, tuple[HostDevice, ...]] = {}
        self._taken: dict[int, Counter[str]] = {}
        self._kept: dict[tuple[WantedDevice, ...], _Kept] = {}

    def declare(self, row: int, devices: tuple[HostDevice, ...]) -> None:
        """Say what a row's host has."""
        if devices:
            self._present[row] = tuple(sorted(devices, key=lambda device: device.address))
        else:
            self._present.pop(row, None)
        self._changed(row)

    def take(self, row: int, addresses: Iterable[str]) -> None:
        """Give devices to a machine."""
        self._taken.setdefault(row, Counter()).update(addresses)
        self._changed(row)

    def give_back(self, row: int, addresses: Iterable[str]) -> None:
        """Have devices back from a machine."""
        taken = self._taken[row]
        taken.subtract(addresses)
        self._taken[row] = +taken
        if not self._taken[row]:
            del self._taken[row]
        self._changed(row)

    def shared(self, row: int, addresses: Iterable[str]) -> str | None:
        """Return a device of these that several machines have been given."""
        taken: Counter[str] = self._taken.get(row) or Counter()
        return next((each for each in addresses if taken[each] > 1), None)

    def _changed(self, row: int) -> None:
        for kept in self._kept.values():
            kept.stale.add(row)

    def view(self, wanted: tuple[WantedDevice, ...], size: int, own: Own | None) -> DeviceView:
        """Look at all rows for a machine; what it holds itself counts as free for it."""
        kept = self._kept.get(wanted)
        if kept is None or kept.lacking.size != size:
            if len(self._kept) >= VIEWS_KEPT:
                self._kept.clear()
            kept = self._kept[wanted] = _Kept(wanted, size, self._present)
        for row in kept.stale:
            kept.set(row, self._present.get(row, ()), self._left(row, None))
        kept.stale.clear()
        if own is not None:
            kept.set(own[0], self._present.get(own[0], ()), self._left(own[0], own))
            kept.stale.add(own[0])
        return DeviceView(wanted, kept.present.copy(), kept.free.copy(), kept.lacking.copy())

    def choose(
        self, wanted: tuple[WantedDevice, ...], row: int, own: Own | None
    ) -> tuple[HostDevice, ...] | None:
        """Choose devices on a row's host, those near to one another if there are enough."""
        left = self._left(row, own)
        nodes = sorted({device.numa_node for device in left if device.numa_node is not None})
        for node in nodes:
            near = _assign(wanted, [device for device in left if device.numa_node == node])
            if near is not None:
                return near
        return _assign(wanted, left)

    def _left(self, row: int, own: Own | None) -> list[HostDevice]:
        taken: Counter[str] = self._taken.get(row) or Counter()
        mine = own[1] if own is not None and own[0] == row else frozenset()
        return [
            device
            for device in self._present.get(row, ())
            if taken[device.address] - (device.address in mine) <= 0
        ]


def _assign(
    wanted: Sequence[WantedDevice], devices: Sequence[HostDevice]
) -> tuple[HostDevice, ...] | None:
    """Give every wish its devices; where wishes compete, earlier ones step aside if they can.

    That is the matching of augmenting paths, so that a way is found whenever there is one.
    """
    slots = [each for each in wanted for _ in range(each.count)]
    holder: dict[int, int] = {}

    def seat(slot: int, tried: set[int]) -> bool:
        fitting = [n for n, device in enumerate(devices) if slots[slot].is_met_by(device)]
        free = next((number for number in fitting if number not in holder), None)
        if free is not None:
            holder[free] = slot
            return True
        for number in fitting:
            if number not in tried:
                tried.add(number)
                if seat(holder[number], tried):
                    holder[number] = slot
                    return True
        return False

    if len(slots) > len(devices) or not all(seat(slot, set()) for slot in range(len(slots))):
        return None
    return tuple(devices[number] for number in sorted(holder))
