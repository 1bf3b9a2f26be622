"""Work on machines that takes longer than a call may: one piece at a time for each machine.

What went wrong with one is told by the next orders for the same, for a while.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from novacron.core.errors import Busy, DriverError
from novacron.drivers.libvirt.unforeseen import unforeseen

__all__ = ["ERRANDS_AT_ONCE", "Errands"]

AGAIN = timedelta(seconds=1)
FINISH_SECONDS = 3.0
# Who hears of a failure asks again after half a minute, or after what it says itself.
PAUSE_SECONDS = 30.0
NEARLY = 0.9
# Of a large guest's memory that is long, and of one that hangs it has to end somewhere.
LONGEST_SECONDS = 300.0
# Those included that hang. Each keeps one of the twenty workers that a daemon has.
ERRANDS_AT_ONCE = 8


@dataclass(slots=True)
class _Place:
    """What an errand waits for before it begins."""

    taken: bool = False
    given_back: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True, slots=True)
class _Errand:
    what: str
    place: _Place
    task: "asyncio.Task[None]"


@dataclass(frozen=True, slots=True)
class _Failure:
    error: DriverError
    until: float

    @classmethod
    def now(cls, error: DriverError) -> "_Failure":
        """Return a failure that is told until whoever heard of it may ask once more."""
        pause = error.after.total_seconds() if isinstance(error, Busy) else PAUSE_SECONDS
        return cls(error, asyncio.get_running_loop().time() + pause * NEARLY)


@dataclass(slots=True)
class Errands:
    """Runs errands, few at once; ``done`` gets the UID of a machine when one has ended.

    One that takes very long goes on and is not counted any more: a guest that hangs is in the way
    of no other machine. Where many do, no more begin, and whoever orders one hears so.
    """

    done: Callable[[str], None]
    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))
    longest_seconds: float = LONGEST_SECONDS
    most_at_once: int = ERRANDS_AT_ONCE
    _under_way: dict[str, _Errand] = field(default_factory=dict)
    _failures: dict[tuple[str, str], _Failure] = field(default_factory=dict)

    def under_way(self, uid: str) -> str | None:
        """Return what is being done to a machine."""
        errand = self._under_way.get(uid)
        return errand.what if errand else None

    def those(self, kind: str) -> frozenset[str]:
        """Return the machines to which something of a kind is being done."""
        return frozenset(
            uid for uid, errand in self._under_way.items() if errand.what.startswith(kind)
        )

    async def run(self, uid: str, what: str, work: Callable[[], Awaitable[None]]) -> None:
        """Begin something, or see that it goes on; a moment is waited for it to end."""
        errand = self._under_way.get(uid)
        if errand is None:
            self._raise_failure(uid, what)
            place = _Place()
            task = asyncio.create_task(self._run(uid, what, work, place))
            errand = self._under_way[uid] = _Errand(what, place, task)
        elif errand.what != what:
            raise Busy(f"its host is busy with another errand ({errand.what})", AGAIN)
        await asyncio.wait({errand.task}, timeout=0.1)
        self._raise_failure(uid, what)

    def _raise_failure(self, uid: str, what: str) -> None:
        """Raise what went wrong, until it is worth another attempt.

        Others may be tried meanwhile, whose failures are no reason to begin with this one again.
        """
        failed = self._failures.get((uid, what))
        if failed is None:
            return
        if failed.until > asyncio.get_running_loop().time():
            raise failed.error
        del self._failures[uid, what]

    def require_idle(self, uid: str) -> None:
        """Refuse what cannot be done meanwhile; an errand that has not begun gives way."""
        self.withdraw(uid)
        if (what := self.under_way(uid)) is not None:
            raise Busy(f"its host is busy with it ({what})", AGAIN)

    def withdraw(self, uid: str) -> None:
        """Have an errand that has not begun never begin; whoever wants it orders it again."""
        errand = self._under_way.get(uid)
        if errand is not None and not errand.place.taken:
            del self._under_way[uid]
            errand.task.cancel()

    def give_place_back(self, uid: str) -> None:
        """Have others begin: the errand of a machine only waits for its guest from now on."""
        if (errand := self._under_way.get(uid)) is not None:
            errand.place.given_back.set()

    def forget(self, uid: str) -> None:
        """Forget what went wrong."""
        for key in [key for key in self._failures if key[0] == uid]:
            del self._failures[key]

    async def close(self) -> None:
        """Let what ends soon come to its end: a guest may stand still meanwhile."""
        tasks = [errand.task for errand in self._under_way.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=FINISH_SECONDS)
        for task in tasks:
            task.cancel()

    async def _run(
        self, uid: str, what: str, work: Callable[[], Awaitable[None]], place: _Place
    ) -> None:
        try:
            await self._in_its_place(work, place)
        except DriverError as error:
            self._failures[uid, what] = _Failure.now(error)
        except Exception as error:  # noqa: BLE001 - or it would begin anew at once, for ever
            self._failures[uid, what] = _Failure.now(unforeseen(what, error))
        finally:
            # It may have been withdrawn, and another one been ordered since.
            if (errand := self._under_way.get(uid)) is not None and errand.place is place:
                del self._under_way[uid]
            self.done(uid)

    async def _in_its_place(self, work: Callable[[], Awaitable[None]], place: _Place) -> None:
        async with self.places:
            self._require_few_at_work()
            place.taken = True
            begun = asyncio.ensure_future(work())
            given_back = asyncio.create_task(place.given_back.wait())
            either: set[asyncio.Future[Any]] = {begun, given_back}
            try:
                await asyncio.wait(
                    either, timeout=self.longest_seconds, return_when=asyncio.FIRST_COMPLETED
                )
            except asyncio.CancelledError:
                begun.cancel()
                raise
            finally:
                given_back.cancel()
        await begun

    def _require_few_at_work(self) -> None:
        """Refuse to begin where so many hang that their host would soon be busy with nothing else.

        At once: whoever waited for one of them to end would wait for ever.
        """
        count = sum(errand.place.taken for errand in self._under_way.values())
        if count >= self.most_at_once:
            raise Busy(
                f"its host has been at work on {count} other guests for very long, which seem to "
                "hang: end them there, or mend what they wait for",
                timedelta(seconds=PAUSE_SECONDS),
            )
