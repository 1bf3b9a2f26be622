"""Makes qcow2 of images in other formats, with qemu-img under limits.

The file is anybody's, so qemu-img is told what it is and where its one disk lies, has no network,
no rights and no other file, and ends when it takes too long. Both files have no name: whatever
happens to this process, nothing is left of them.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from novacron.core.errors import Busy, DriverError, Rejected
from novacron.images.fetch import CHUNK
from novacron.images.inspect import HEADER_BYTES, Inspected, inspect
from novacron.images.limits import Limits
from novacron.images.ova import files_in

__all__ = ["Converted", "converted"]

CONFINE = Path(__file__).with_name("confine.py")
ADDRESS_BYTES = 2 * 1024**3
# Most of it is never written to: 45 MiB are, of a disk of 2 TiB. So the limit of the chart's pod
# holds the operator and the four conversions that a host may have under way.
MEMORY_BYTES = 256 * 1024**2
DEADLINE_SECONDS = 3600
LOOK_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Converted:
    """An image that can be used now, as a file of this machine without a name."""

    inspected: Inspected
    length: int
    _file: IO[bytes]

    def chunks(self) -> Iterator[bytes]:
        """Return its bytes."""
        self._file.seek(0)
        while chunk := self._file.read(CHUNK):
            yield chunk


@dataclass(frozen=True, slots=True)
class _Disk:
    """Where in a file a disk lies."""

    format: str
    start: int
    length: int


class Readable(Protocol):
    """An image whose bytes were checked or will be: all that a conversion needs to know of it."""

    @property
    def shown(self) -> str:
        """How it is called in messages."""

    @property
    def inspected(self) -> Inspected:
        """What it is."""

    @property
    def limits(self) -> Limits:
        """What it must keep."""

    @property
    def done(self) -> int:
        """How many bytes were read by now."""

    def chunks(self) -> Iterator[bytes]:
        """Return its bytes."""


@contextmanager
def converted(
    fetch: Readable, scratch: Path | None, beat: Callable[[], None]
) -> Iterator[Converted]:
    """Read an image to its end, check it, and give it back as qcow2."""
    with _nameless(scratch) as source, _nameless(scratch) as target:
        try:
            for chunk in fetch.chunks():
                beat()
                source.write(chunk)
            source.flush()
        except OSError as error:
            raise _no_room(error) from error
        disk = _disk(fetch, source)
        _convert(fetch, disk, source, target, beat)
        target.seek(0)
        inspected = inspect(target.read(HEADER_BYTES), fetch.shown)
        fetch.limits.require_size(fetch.shown, inspected.virtual_bytes or 0)
        yield Converted(inspected, os.fstat(target.fileno()).st_size, target)


@contextmanager
def _nameless(directory: Path | None) -> Iterator[IO[bytes]]:
    try:
        made = tempfile.TemporaryFile(dir=directory)  # noqa: SIM115 - closed below
    except OSError as error:
        raise _no_room(error) from error
    with made as file:
        # qemu-img opens it by its number, as nobody; nobody else can get at it.
        os.fchmod(file.fileno(), 0o666)
        yield file


def _disk(fetch: Readable, source: IO[bytes]) -> _Disk:
    if fetch.inspected.format != "ova":
        return _Disk(fetch.inspected.format, 0, fetch.done)
    try:
        files = files_in(source, fetch.done)
    except (tarfile.TarError, ValueError, OSError) as error:
        raise _refusal(fetch, f"is a damaged ova: {error}") from error
    disks = [each for each in files if each.name.lower().endswith(".vmdk")]
    if len(disks) != 1:
        raise _refusal(fetch, f"is an ova with {len(disks)} vmdk disks; exactly one can be used")
    disk = disks[0]
    source.seek(disk.offset_data)
    inner = inspect(source.read(min(HEADER_BYTES, disk.size)), f"{fetch.shown} ({disk.name})")
    if inner.format != "vmdk":
        raise _refusal(fetch, f"is an ova whose disk {disk.name} is {inner.format}, not vmdk")
    fetch.limits.require_size(fetch.shown, inner.virtual_bytes or 0)
    return _Disk("vmdk", disk.offset_data, disk.size)


def _convert(
    fetch: Readable, disk: _Disk, source: IO[bytes], target: IO[bytes], beat: Callable[[], None]
) -> None:
    size = fetch.limits.unfolded_bytes(fetch.done)
    limits = (str(ADDRESS_BYTES), str(MEMORY_BYTES), str(DEADLINE_SECONDS), str(size))
    command = [sys.executable, "-I", "-S", str(CONFINE), *limits]
    command += [_program(), "convert", "-q", "-O", "qcow2"]
    command += [_given(disk, source), f"/dev/fd/{target.fileno()}"]
    files = (source.fileno(), target.fileno())
    with (
        tempfile.TemporaryFile() as said,
        subprocess.Popen(
            command, pass_fds=files, stdin=subprocess.DEVNULL, stdout=said, stderr=said
        ) as process,
    ):
        try:
            _await(process, beat)
            if process.poll() == -signal.SIGKILL:
                raise _no_room(MemoryError("the kernel ended qemu-img, as it does for memory"))
        finally:
            process.kill()
            process.wait()
        said.seek(0)
        words = said.read(4096).decode(errors="replace")
        if process.returncode:
            raise _failure(fetch, words, size, target)


def _program() -> str:
    found = shutil.which("qemu-img")
    if found is None:
        raise _no_room(FileNotFoundError("qemu-img is not installed where it runs"))
    return found


def _given(disk: _Disk, source: IO[bytes]) -> str:
    """Return the disk with nothing left to be guessed, above all no backing file."""
    file = {"driver": "file", "filename": f"/dev/fd/{source.fileno()}", "read-only": True}
    part = {"driver": "raw", "offset": disk.start, "size": disk.length, "file": file}
    return "json:" + json.dumps({"driver": disk.format, "backing": None, "file": part})


def _await(process: "subprocess.Popen[bytes]", beat: Callable[[], None]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        beat()
        try:
            process.wait(LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            continue


def _failure(fetch: Readable, words: str, size: int, target: IO[bytes]) -> DriverError:
    if os.fstat(target.fileno()).st_size >= size or "File too large" in words:
        return _refusal(
            fetch,
            f"unfolds to more than {size // 1024**2} MiB, which no honest image of its size does",
            reason="ImageTooLarge",
        )
    last = (words.strip().splitlines() or ["it took too long"])[-1]
    if "No space left" in words:
        return _no_room(OSError(last))
    return _refusal(fetch, f"cannot be converted: {last[:300]}")


def _no_room(error: OSError | MemoryError) -> Busy:
    return Busy(f"the operator cannot convert images at present: {error}", reason="NoScratchSpace")


def _refusal(fetch: Readable, why: str, *, reason: str = "NotAnImage") -> Rejected:
    return Rejected(f"image {fetch.shown} {why}", reason=reason)
