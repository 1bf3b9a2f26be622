"""Where the bytes of an image are, and how they are read from any place on.

Reading blocks, so it belongs into a thread. Whoever is silent for too long is given up.
"""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

__all__ = ["Bytes", "FileBytes", "Opened", "Readable"]


class Readable(Protocol):
    """Something that gives its bytes one after the other."""

    def read(self, size: int, /) -> bytes:
        """Return up to so many bytes; none at the end."""


@dataclass(frozen=True, slots=True)
class Opened:
    """Bytes that are being read, beginning at ``start``.

    ``length`` is how many there are in all, if that is known. ``version`` changes when the bytes
    do, and is empty where the source cannot tell; ``validator`` is by what it recognises them when
    it is asked for the rest, and empty where it cannot.
    """

    stream: Readable
    start: int
    length: int | None
    version: str
    validator: str = ""


class Bytes(Protocol):
    """A place where bytes are."""

    @property
    def shown(self) -> str:
        """How it is called in messages, without anything secret."""

    @property
    def identity(self) -> str:
        """What is the same only for the same place."""

    def open(self, start: int = 0, validator: str = "") -> AbstractContextManager[Opened]:
        """Read from there on, if the bytes are still the same; otherwise from the beginning."""


@dataclass(frozen=True, slots=True)
class FileBytes:
    """A file of this machine, such as an image that comes with us."""

    path: Path
    shown: str

    @property
    def identity(self) -> str:
        """Return what changes with the file."""
        found = self.path.stat()
        return f"{self.path} {found.st_size} {found.st_mtime_ns}"

    @contextmanager
    def open(self, start: int = 0, validator: str = "") -> Iterator[Opened]:  # noqa: ARG002
        """Read the file."""
        with self.path.open("rb") as file:
            found = os.fstat(file.fileno())
            file.seek(start)
            version = f"{found.st_size} {found.st_mtime_ns}"
            yield Opened(file, start, found.st_size, version)
