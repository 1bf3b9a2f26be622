"""Reading a container's log: the last lines, those since a moment, and those still to come."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from novacron.localcluster.node.logfile import old_of

__all__ = ["Wish", "lines_of", "shown"]

POLL_SECONDS = 0.25
CHUNK = 2**16


@dataclass(frozen=True, slots=True)
class Wish:
    """Which lines somebody wants; ``since`` is a moment as the log writes it."""

    follow: bool = False
    tail: int | None = None
    since: str = ""
    timestamps: bool = False
    limit: int | None = None


def shown(line: bytes, *, timestamps: bool) -> bytes:
    """Return a line of the log as its reader wants it: P is a part that goes on."""
    stamp, _, rest = line.partition(b" ")
    _, _, rest = rest.partition(b" ")
    tag, _, text = rest.partition(b" ")
    end = b"" if tag == b"P" else b"\n"
    return (stamp + b" " if timestamps else b"") + text + end


async def lines_of(log: Path, wish: Wish, over: Callable[[], bool]) -> AsyncGenerator[bytes, None]:
    """Return the lines that are there, then those to come until the run is over."""
    with _Reader(log) as reader:
        present = [line for line in (*_old(log), *reader.lines()) if _is_wanted(line, wish)]
        for line in present if wish.tail is None else present[len(present) - wish.tail :]:
            yield line
        while wish.follow:
            # Asked before reading: what it wrote last is read after it is over.
            finished = over()
            for line in reader.lines():
                yield line
            if finished:
                return
            await asyncio.sleep(POLL_SECONDS)


def _is_wanted(line: bytes, wish: Wish) -> bool:
    moment = line.partition(b" ")[0].decode(errors="replace")
    # Without the Z, which is greater than the fraction of a second that may stand before it.
    return not wish.since or moment.rstrip("Z") >= wish.since.rstrip("Z")


def _old(log: Path) -> list[bytes]:
    try:
        return old_of(log).read_bytes().splitlines()
    except OSError:
        return []


class _Reader:
    """Reads whole lines as they come, also across the moment when the file is replaced."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._file = log.open("rb")
        self._rest = b""

    def __enter__(self) -> "_Reader":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def lines(self) -> Iterator[bytes]:
        """Return the lines that were added since the last call."""
        while True:
            yield from self._added()
            if not self._replaced():
                return
            yield from self._added()
            self._file.close()
            self._file = self._log.open("rb")

    def _added(self) -> Iterator[bytes]:
        while data := self._file.read(CHUNK):
            *lines, self._rest = (self._rest + data).split(b"\n")
            yield from lines

    def _replaced(self) -> bool:
        try:
            return not os.path.samestat(self._log.stat(), os.fstat(self._file.fileno()))
        except FileNotFoundError:
            return False
