"""Work on machines that takes longer than a call may: one piece at a time for each machine.

What went wrong with one is told by the next order for the same.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta

from novacron.core.errors import Busy, DriverError
from novacron.drivers.libvirt.unforeseen import unforeseen

__all__ = ["Errands"]

AGAIN = timedelta(seconds=1)
FINISH_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class _Errand:
    what: str
    task: "asyncio.Task[None]"


@dataclass(slots=True)
class Errands:
    """Runs errands, few at once; ``done`` gets the UID of a machine when one has ended."""

    done: Callable[[str], None]
    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))
    _under_way: dict[str, _Errand] = field(default_factory=dict)
    _failures: dict[tuple[str, str], DriverError] = field(default_factory=dict)

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
        if (failed := self._failures.pop((uid, what), None)) is not None:
            raise failed
        errand = self._under_way.get(uid)
        if errand is None:
            errand = _Errand(what, asyncio.create_task(self._run(uid, what, work)))
            self._under_way[uid] = errand
        elif errand.what != what:
            raise Busy(f"its host is busy with another errand ({errand.what})", AGAIN)
        await asyncio.wait({errand.task}, timeout=0.1)
        if (failed := self._failures.pop((uid, what), None)) is not None:
            raise failed

    def require_idle(self, uid: str) -> None:
        """Refuse what cannot be done meanwhile."""
        if (what := self.under_way(uid)) is not None:
            raise Busy(f"its host is busy with it ({what})", AGAIN)

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

    async def _run(self, uid: str, what: str, work: Callable[[], Awaitable[None]]) -> None:
        try:
            async with self.places:
                await work()
        except DriverError as error:
            self._failures[uid, what] = error
        except Exception as error:  # noqa: BLE001 - or it would begin anew at once, for ever
            self._failures[uid, what] = unforeseen(what, error)
        finally:
            del self._under_way[uid]
            self.done(uid)
