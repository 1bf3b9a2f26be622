"""How much every host has free of each storage class, and who takes what of it.

The books have one account for each place: hosts that see the same one draw on the same account,
and so do classes of one host that are the same place. The host's own storage is among them as the
class without a name, where others may see it too. A volume counts once in an account, also while
its machine is on the way from one host to another that sees the place, and where several machines
have it. A class that no host tells the size of has no end.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from novacron.core.host import StorageRoom
from novacron.core.resources import Share

__all__ = ["StorageBooks", "StorageView"]

Amounts = NDArray[np.int64]

# The account of all that nobody knows the size of.
BOUNDLESS, MUCH = 0, 2**60
FIRST_SIZE = 16


@dataclass(frozen=True, slots=True, eq=False)
class StorageView:
    """For each class a machine asks for: how many MiB it asks, and each row has free for it."""

    wanted: tuple[tuple[str, int], ...]
    free: Amounts
    lacking: NDArray[np.bool_]


class StorageBooks:
    """The accounts of all rows. The numbers of accounts are columns, so a look is a few sums."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._unused = list(range(FIRST_SIZE - 1, 0, -1))
        self._free = np.full(FIRST_SIZE, MUCH, dtype=np.int64)
        self._keys: dict[int, str] = {}
        self._rooms: dict[int, dict[tuple[int, str], int]] = {}
        self._declared: dict[int, tuple[StorageRoom, ...]] = {}
        self._of_row: dict[int, dict[str, int]] = {}
        self._columns: dict[str, Amounts] = {}
        self._taken: dict[str, tuple[tuple[int, int], ...]] = {}

    def knows(self, row: int) -> bool:
        """Say whether a row has any account."""
        return row in self._of_row

    def declare(self, row: int, rooms: tuple[StorageRoom, ...], held: Iterable[Share]) -> None:
        """Say what a row's host has; ``held`` is what machines hold there, before and after."""
        if self._declared.get(row, ()) == rooms:
            return
        shares = tuple(held)
        self._count(row, shares, -1)
        for storage_class, account in self._of_row.pop(row, {}).items():
            self._close(row, storage_class, account)
        self._declared.pop(row, None)
        if rooms:
            self._declared[row] = rooms
        for room in rooms:
            self._open(row, room)
        self._count(row, shares, 1)

    def take(self, row: int, shares: Iterable[Share]) -> None:
        """Give room to a machine."""
        self._count(row, shares, 1)

    def give_back(self, row: int, shares: Iterable[Share]) -> None:
        """Have room back from a machine."""
        self._count(row, shares, -1)

    def view(self, shares: Sequence[Share], size: int) -> StorageView | None:
        """Look at all rows for a machine; None where nobody knows how much there is."""
        wanted = _by_class(shares)
        if self._columns.keys().isdisjoint(wanted):
            return None
        accounts = np.array([self._column(each, size)[:size] for each in wanted])
        counted = self._counted(tuple(wanted), shares, accounts)
        free = self._free[accounts]
        more = np.array(list(wanted.values()), dtype=np.int64)[:, None] - counted
        lacking = np.zeros(size, dtype=np.bool_)
        for own, left in zip(accounts, free, strict=True):
            # Classes that are one place need room there for all of them.
            together = np.where(accounts == own, more, 0).sum(axis=0)
            lacking |= (together > 0) & (together > left)
        return StorageView(tuple(wanted.items()), free + counted, lacking)

    def lack(self, row: int, shares: Iterable[Share]) -> tuple[str, int, int] | None:
        """Return a class of which a row has too little, how much more is asked, and is free."""
        mine, asked = self._of_row.get(row, {}), dict[int, int]()
        for share in shares:
            account = mine.get(share.storage_class, BOUNDLESS)
            has = _most(self._taken.get(share.volume, ()), account)
            more = asked[account] = asked.get(account, 0) + max(share.mib - has, 0)
            free = int(self._free[account])
            if more and more > free:
                return share.storage_class, more, max(free, 0)
        return None

    def overdrawn(self, row: int, shares: Iterable[Share]) -> str | None:
        """Return a class of these of which more was promised than there is."""
        mine = self._of_row.get(row, {})
        for share in shares:
            if self._free[mine.get(share.storage_class, BOUNDLESS)] < 0:
                return share.storage_class
        return None

    def _counted(
        self, classes: tuple[str, ...], shares: Sequence[Share], accounts: Amounts
    ) -> Amounts:
        """Return how much of the shares is in each account already."""
        counted = np.zeros_like(accounts)
        for share in shares:
            number = classes.index(share.storage_class)
            taken = self._taken.get(share.volume, ())
            for account in {account for account, _ in taken}:
                has = min(_most(taken, account), share.mib)
                counted[number, accounts[number] == account] += has
        return counted

    def _count(self, row: int, shares: Iterable[Share], times: int) -> None:
        mine = self._of_row.get(row)
        if mine is None:
            return
        for share in shares:
            if (account := mine.get(share.storage_class)) is not None:
                self._book(account, share, times)

    def _book(self, account: int, share: Share, times: int) -> None:
        before = self._taken.get(share.volume, ())
        one = (account, share.mib)
        if times > 0:
            now = (*before, one)
        else:
            at = before.index(one)
            now = before[:at] + before[at + 1 :]
        if now:
            self._taken[share.volume] = now
        else:
            del self._taken[share.volume]
        self._free[account] += _most(before, account) - _most(now, account)

    def _open(self, row: int, room: StorageRoom) -> None:
        account = self._number(room.id or f"{row}/{room.storage_class}")
        rooms = self._rooms.setdefault(account, {})
        before = min(rooms.values(), default=0)
        rooms[row, room.storage_class] = room.allocatable_mib
        # Each of those who see a place may know of something in it that the others do not.
        self._free[account] += min(rooms.values()) - before
        self._of_row.setdefault(row, {})[room.storage_class] = account
        self._column(room.storage_class, row + 1)[row] = account

    def _close(self, row: int, storage_class: str, account: int) -> None:
        rooms = self._rooms[account]
        before = min(rooms.values())
        del rooms[row, storage_class]
        self._free[account] += min(rooms.values(), default=0) - before
        self._columns[storage_class][row] = BOUNDLESS
        if not rooms:
            del self._rooms[account]
            del self._numbers[self._keys.pop(account)]
            self._unused.append(account)

    def _number(self, key: str) -> int:
        number = self._numbers.get(key)
        if number is None:
            if not self._unused:
                size = self._free.size
                self._unused = list(range(2 * size - 1, size - 1, -1))
                self._free = np.pad(self._free, (0, size))
            number = self._numbers[key] = self._unused.pop()
            self._keys[number], self._free[number] = key, 0
        return number

    def _column(self, storage_class: str, size: int) -> Amounts:
        """Return the account of each row for a class."""
        column = self._columns.get(storage_class)
        if column is None or column.size < size:
            had = np.zeros(0, dtype=np.int64) if column is None else column
            column = self._columns[storage_class] = np.pad(had, (0, size - had.size))
        return column


def _by_class(shares: Iterable[Share]) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for share in shares:
        found[share.storage_class] = found.get(share.storage_class, 0) + share.mib
    return found


def _most(taken: Iterable[tuple[int, int]], account: int) -> int:
    """Return how much a volume takes of an account, whoever has it."""
    return max((mib for number, mib in taken if number == account), default=0)
