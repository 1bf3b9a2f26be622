"""Answers of web servers that come in time, however little of them comes at once.

A socket's own timeout is that of a single byte: a server that sends one every now and then, be it
of its headers or between the pieces of an image, would be waited for without end.
"""

import http.client
import io
import socket
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

__all__ = ["Answer", "seconds_until"]


def seconds_until(moment: float) -> float:
    """Return how long there is until then; raise TimeoutError when that has come."""
    left = moment - time.monotonic()
    if left <= 0:
        raise TimeoutError("it takes too long to answer")
    return left


class _Line(io.RawIOBase):
    """What comes through a socket until a moment."""

    def __init__(self, sock: socket.socket, until: float) -> None:
        self._sock = sock
        self._file = sock.makefile("rb", buffering=0)
        self.until = until

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int | None:
        self._sock.settimeout(seconds_until(self.until))
        return self._file.readinto(buffer)

    def close(self) -> None:
        self._file.close()
        super().close()


class Answer(http.client.HTTPResponse):
    """An answer to GET: its headers come by a moment, and then something every so many seconds."""

    def __init__(self, sock: socket.socket, until: float, seconds: float) -> None:
        super().__init__(sock, method="GET")
        self.fp.close()
        self._line = _Line(sock, until)
        self._seconds = seconds
        self.fp = io.BufferedReader(self._line)
        try:
            self.begin()
        except BaseException:
            self.close()
            raise
        self._left = self.length

    def read(self, amt: int | None = None) -> bytes:
        """Return what came next, up to so many bytes; none at the end, or where it broke off."""
        size = -1 if amt is None else amt
        if self._left is not None:
            size = self._left if size < 0 else min(size, self._left)
        if not size:
            return b""
        self._line.until = time.monotonic() + self._seconds
        data = self.read1(size)
        if self._left is not None:
            self._left -= len(data)
        return data
