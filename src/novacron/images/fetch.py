"""Reads an image as a whole: what it is, all its bytes, and whether they are the right ones.

Reading blocks, so it belongs into a thread. A source that goes silent is given up, so whoever
reads is either making progress or has failed.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from novacron.core.errors import Busy, Rejected
from novacron.images.bytes import Bytes
from novacron.images.inspect import HEADER_BYTES, Inspected, inspect
from novacron.images.limits import Limits
from novacron.images.steady import INCOMPLETE, Clock, Steady

__all__ = ["Fetch", "open_image"]

CHUNK = 1024 * 1024
AGAIN = timedelta(seconds=20)


def _silently() -> None:
    """Take note of nothing."""


@dataclass(slots=True)
class Fetch:
    """An image being read: what it is, how long if that is known, and its bytes in pieces.

    ``chunks`` raises when the bytes end early or do not amount to the checksum, so nothing may
    be used before it has ended. ``version`` changes when what is behind the address does; it is
    empty where its server does not tell.
    """

    shown: str
    inspected: Inspected
    length: int | None
    version: str
    limits: Limits
    _head: bytes
    _rest: Steady
    _checksum: str | None
    done: int = field(default=0, init=False)
    _earlier: Iterator[bytes] | None = field(default=None, init=False)

    @property
    def resumable(self) -> bool:
        """Say whether somebody else can go on with it later, and know that it is the same."""
        recognised = self._checksum is not None or bool(self._rest.first.validator)
        return self.length is not None and recognised

    def go_on_after(self, earlier: Iterator[bytes]) -> None:
        """Take these bytes for the beginning, so that only the rest is read and returned."""
        self._earlier = earlier

    def chunks(self) -> Iterator[bytes]:
        """Return the bytes, and check them at the end."""
        algorithm, _, wanted = (self._checksum or "sha256:").partition(":")
        digest = hashlib.new(algorithm)
        chunk = self._head if self._earlier is None else self._rest_after(self._earlier, digest)
        while chunk:
            digest.update(chunk)
            self.done += len(chunk)
            self.limits.require_bytes(self.shown, self.done)
            yield chunk
            chunk = self._rest.read(CHUNK)
        if wanted and digest.hexdigest() != wanted:
            raise Rejected(
                f"image {self.shown} has {algorithm}:{digest.hexdigest()}, "
                f"not the checksum that was asked for",
                reason="ChecksumMismatch",
                again=AGAIN,
            )

    def _rest_after(self, earlier: Iterator[bytes], digest: "hashlib._Hash") -> bytes:
        """Check what was read before, and return the first of what was not."""
        for chunk in earlier:
            if not self.done and not chunk.startswith(self._head[: len(chunk)]):
                raise Busy(f"image {self.shown} begins otherwise now", reason=INCOMPLETE)
            digest.update(chunk)
            self.done += len(chunk)
        if self.length is not None and self.done >= self.length:
            return b""
        self._rest.go_to(self.done)
        return self._rest.read(CHUNK)


@contextmanager
def open_image(
    source: Bytes,
    checksum: str | None,
    limits: Limits,
    beat: Callable[[], None] = _silently,
    clock: Clock | None = None,
) -> Iterator[Fetch]:
    """Open an image and look at its beginning."""
    steady = Steady(source, beat, proven=checksum is not None, clock=clock)
    try:
        first = steady.first
        limits.require_bytes(source.shown, first.length or 0)
        head = steady.read(HEADER_BYTES)
        inspected = inspect(head, source.shown)
        limits.require_size(source.shown, inspected.virtual_bytes or 0)
        yield Fetch(
            source.shown, inspected, first.length, first.version, limits, head, steady, checksum
        )
    finally:
        steady.close()
