"""Reads an image as a whole: what it is, all its bytes, and whether they are the right ones.

Reading blocks, so it belongs into a thread. A source that goes silent is given up, so whoever
reads is either making progress or has failed.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from novacron.core.errors import Rejected
from novacron.images.bytes import Bytes, Readable
from novacron.images.inspect import HEADER_BYTES, Inspected, inspect
from novacron.images.limits import Limits
from novacron.images.steady import Clock, Steady

__all__ = ["Fetch", "open_image"]

CHUNK = 1024 * 1024
AGAIN = timedelta(seconds=20)


def _silently() -> None:
    """Take note of nothing."""


@dataclass(slots=True)
class Fetch:
    """An image being read: what it is, how long if that is known, and its bytes in pieces.

    ``chunks`` raises when the bytes end early or do not amount to the checksum, so nothing may
    be used before it has ended. ``version`` changes when what is behind the address does, as far
    as its server tells.
    """

    shown: str
    inspected: Inspected
    length: int | None
    version: str
    limits: Limits
    _head: bytes
    _rest: Readable
    _checksum: str | None
    done: int = field(default=0, init=False)

    def chunks(self) -> Iterator[bytes]:
        """Return the bytes, and check them at the end."""
        algorithm, _, wanted = (self._checksum or "sha256:").partition(":")
        digest = hashlib.new(algorithm)
        chunk = self._head
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
        head = _beginning(steady)
        inspected = inspect(head, source.shown)
        limits.require_size(source.shown, inspected.virtual_bytes or 0)
        yield Fetch(
            source.shown, inspected, first.length, first.version, limits, head, steady, checksum
        )
    finally:
        steady.close()


def _beginning(stream: Readable) -> bytes:
    head = b""
    while len(head) < HEADER_BYTES and (more := stream.read(HEADER_BYTES - len(head))):
        head += more
    return head
