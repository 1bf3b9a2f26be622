"""Writing a container's output line by line, in the form that container runtimes use.

``2026-11-15T10:00:00.123456789Z stdout F text``: F ends a line, P is a part of a longer one.
Two files at most: when one is full it becomes the old one. Standard library only.
"""

import time
from pathlib import Path

__all__ = ["LIMIT_BYTES", "LogFile", "old_of"]

LIMIT_BYTES = 10 * 2**20
LONGEST_PART = 16 * 2**10


def old_of(path: Path) -> Path:
    """Return where the lines before those of a log are."""
    return path.with_suffix(".log.old")


class LogFile:
    """One log, written by one process."""

    def __init__(self, path: Path, limit: int = LIMIT_BYTES) -> None:
        self._path = path
        self._limit = limit
        self._file = path.open("ab", buffering=0)
        self._size = self._file.tell()
        self._rest: dict[str, bytes] = {}

    def write(self, stream: str, data: bytes) -> None:
        """Take in output; a line is written when it ends, or when it grows too long."""
        *lines, rest = (self._rest.get(stream, b"") + data).split(b"\n")
        stamp = _now()
        content = b"".join(_parts(stamp, stream, line) for line in lines)
        while len(rest) >= LONGEST_PART:
            content += _line(stamp, stream, b"P", rest[:LONGEST_PART])
            rest = rest[LONGEST_PART:]
        self._rest[stream] = rest
        self._append(content)

    def close(self) -> None:
        """Write lines that never ended, and close."""
        for stream, rest in self._rest.items():
            if rest:
                self._append(_line(_now(), stream, b"F", rest))
        self._file.close()

    def _append(self, content: bytes) -> None:
        if self._size and self._size + len(content) > self._limit:
            self._file.close()
            self._path.replace(old_of(self._path))
            self._file = self._path.open("ab", buffering=0)
            self._size = 0
        self._file.write(content)
        self._size += len(content)


def _parts(stamp: bytes, stream: str, line: bytes) -> bytes:
    content = b""
    while len(line) > LONGEST_PART:
        content += _line(stamp, stream, b"P", line[:LONGEST_PART])
        line = line[LONGEST_PART:]
    return content + _line(stamp, stream, b"F", line)


def _line(stamp: bytes, stream: str, tag: bytes, text: bytes) -> bytes:
    return b"%b %b %b %b\n" % (stamp, stream.encode(), tag, text)


def _now() -> bytes:
    seconds, nanoseconds = divmod(time.time_ns(), 10**9)
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{whole}.{nanoseconds:09d}Z".encode()
