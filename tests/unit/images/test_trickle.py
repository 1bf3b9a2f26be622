"""Servers that send so little that they only keep us busy: whatever they send little of."""

import re
import socketserver
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from image_server import Hurried
from novacron.core.errors import Busy
from novacron.images import Limits, Reach, WebBytes, checksum_from, open_image

LOOPBACK = Reach(allow=("127.0.0.0/8",))
PAUSE = 0.01
DRIPS = 300
BOOT = b"\0" * 510 + b"\x55\xaa"
LENGTH = 10 * 1024 * 1024
KNOWN = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nETag: x\r\n\r\n" % LENGTH
REST = b"HTTP/1.1 206 Partial Content\r\nContent-Length: %d\r\nETag: x\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@contextmanager
def dripping(at_once: bytes, drop: bytes, drips: int = DRIPS) -> Iterator[WebBytes]:
    """Serve something at once and then the same again and again, a while apart, and hang up.

    Whoever asks for the rest gets nothing at once.
    """

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            rest = re.search(rb"bytes=(\d+)-", self.request.recv(65536))
            with suppress(OSError):
                self.request.sendall(REST % (LENGTH - int(rest[1])) if rest else at_once)
                for _ in range(drips):
                    time.sleep(PAUSE)
                    self.request.sendall(drop)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        server.block_on_close = False
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield WebBytes(f"http://127.0.0.1:{server.server_address[1]}/x", LOOPBACK)
        finally:
            server.shutdown()


def reads(place: WebBytes, beats: list[float]) -> Busy:
    """Return why an image is not read to its end."""
    beat = lambda: beats.append(time.monotonic())  # noqa: E731
    with (
        pytest.raises(Busy) as trouble,
        open_image(place, None, Limits(), beat, Hurried()) as fetch,
    ):
        list(fetch.chunks())
    return trouble.value


@pytest.mark.parametrize("drips", [DRIPS, 1], ids=["in one connection", "in ever new ones"])
@pytest.mark.parametrize("start", [KNOWN, KNOWN + BOOT.ljust(70_000)], ids=["at once", "later"])
def test_an_image_that_drips_is_given_up_and_beats_until_then(start: bytes, drips: int) -> None:
    """Each byte comes in time; all of them together would take years."""
    beats: list[float] = []
    with dripping(start, b"x", drips) as place:
        trouble = reads(place, beats)
    assert trouble.reason == "ImageIncomplete"
    assert "comes too slowly" in str(trouble)
    assert drips == 1 or len(beats) > 50


@pytest.mark.parametrize(
    ("start", "drop"),
    [(b"", b"H"), (b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"), (b"", b"HTTP/1.1 100 Continue\r\n\r\n")],
    ids=["its first word", "a header", "promises"],
)
def test_headers_that_drip_are_given_up(
    monkeypatch: pytest.MonkeyPatch, start: bytes, drop: bytes
) -> None:
    """A server says what it has in a moment or never."""
    monkeypatch.setattr("novacron.images.web.ANSWER_SECONDS", 20 * PAUSE)
    begun = time.monotonic()
    with dripping(start, drop) as place:
        trouble = reads(place, [])
    assert trouble.reason == "ImageUnreachable"
    assert time.monotonic() - begun < DRIPS * PAUSE


@pytest.mark.parametrize("start", [b"", b"200\r\n" + BOOT + b"\r\n0\r\n"], ids=["size", "trailer"])
def test_what_drips_between_the_pieces_is_given_up_too(
    monkeypatch: pytest.MonkeyPatch, start: bytes
) -> None:
    """The size of a piece can be as long in coming as the piece, and what follows the last one."""
    monkeypatch.setattr("novacron.images.web.SILENCE_SECONDS", 20 * PAUSE)
    drop = b"X: y\r\n" if start else b"0"
    begun = time.monotonic()
    with (
        dripping(CHUNKED + start, drop) as place,
        place.open() as opened,
        pytest.raises(TimeoutError),
    ):
        list(iter(lambda: opened.stream.read(65536), b""))
    assert time.monotonic() - begun < DRIPS * PAUSE


def test_a_file_of_checksums_that_breaks_off_is_asked_for_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is read as images are."""
    monkeypatch.setattr("novacron.images.steady.PATIENCE_SECONDS", 0)
    with dripping(KNOWN, b"x", 1) as place, pytest.raises(Busy) as trouble:
        checksum_from(place, "https://x/disk.img")
    assert trouble.value.reason == "ImageIncomplete"


@pytest.mark.parametrize("length", ["²", "9" * 5000, "-1", "much"])
def test_a_length_that_is_no_number_is_none(length: str) -> None:
    """A server can say anything."""
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n".encode("latin-1")
    with dripping(head + BOOT, b"", 0) as place, place.open() as opened:
        assert opened.length is None
        assert opened.stream.read(65536) == BOOT
