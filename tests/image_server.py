"""A server of images that does what real ones do, also wrong."""

import http.server
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from novacron.images.steady import Clock

__all__ = ["Hurried", "ImageServer", "image_server"]

CHUNK = 64 * 1024


class Hurried(Clock):
    """A clock on which every pause takes no time and every look half a second."""

    def __init__(self) -> None:
        self.time = 0.0
        self.sleep = lambda _: None
        self.now = self._look

    def _look(self) -> float:
        self.time += 0.5
        return self.time


@dataclass
class ImageServer:
    """Serves bytes by path; a path may stop half-way, every time or once, or not exist.

    With ``ranges`` it gives the rest of what it gave before and marks what it gives; with
    ``silent_on_length`` it does not say how much there is; ``pause`` is
    for how long it rests between two pieces, ``served`` how many bytes it gave in all.
    It goes no further than ``stops_at``, for as long as that is so.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    torn: set[str] = field(default_factory=set)
    torn_once: set[str] = field(default_factory=set)
    silent_on_length: bool = False
    moved: dict[str, str] = field(default_factory=dict)
    url: str = ""
    ranges: bool = False
    pause: float = 0.0
    asked: list[str] = field(default_factory=list)
    started_at: list[int] = field(default_factory=list)
    served: int = 0
    stops_at: int | None = None

    def add(self, name: str, content: bytes, *, torn: bool = False, once: bool = False) -> str:
        """Serve something and return its address."""
        self.files[f"/{name}"] = content
        if torn:
            self.torn.add(f"/{name}")
        if once:
            self.torn_once.add(f"/{name}")
        return f"{self.url}/{name}"


class Handler(http.server.BaseHTTPRequestHandler):
    images: ImageServer

    def do_GET(self) -> None:
        images = self.images
        images.asked.append(self.path)
        if onward := images.moved.get(self.path):
            self.send_response(302)
            self.send_header("Location", onward)
            self.end_headers()
            return
        content = images.files.get(self.path)
        if content is None:
            self.send_error(404)
            return
        start = self.start(content)
        images.started_at.append(start)
        self.send_response(206 if start else 200)
        if not images.silent_on_length:
            self.send_header("Content-Length", str(len(content) - start))
        if images.ranges:
            self.send_header("ETag", tag(content))
            if start:
                length = len(content)
                self.send_header("Content-Range", f"bytes {start}-{length - 1}/{length}")
        self.end_headers()
        self.give(content, start)

    def give(self, content: bytes, start: int) -> None:
        images = self.images
        torn = self.path in images.torn or self.path in images.torn_once
        images.torn_once.discard(self.path)
        end = max(start, len(content) // 2) if torn else len(content)
        for at in range(start, end, CHUNK):
            while images.stops_at is not None and at >= images.stops_at:
                time.sleep(0.02)
            images.served += self.wfile.write(content[at : min(at + CHUNK, end)])
            if images.pause:
                time.sleep(images.pause)

    def handle(self) -> None:
        # Whoever asked may be killed meanwhile.
        with suppress(ConnectionError):
            super().handle()

    def start(self, content: bytes) -> int:
        wanted = self.headers.get("Range")
        if not self.images.ranges or not wanted:
            return 0
        if self.headers.get("If-Range") not in (None, tag(content)):
            return 0
        return int(wanted.removeprefix("bytes=").rstrip("-"))

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def tag(content: bytes) -> str:
    """Return what marks a version."""
    return f'"{hash(content)}"'


class QuietServer(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Say nothing: whoever does not trust its certificate hangs up."""


@contextmanager
def image_server(certificate: Path | None = None) -> Iterator[ImageServer]:
    """Serve images on loopback; by https where there is a certificate, with its key in one file."""
    images = ImageServer()
    handler = type("OwnHandler", (Handler,), {"images": images})
    server = QuietServer(("127.0.0.1", 0), handler)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    scheme = "http" if certificate is None else "https"
    images.url = f"{scheme}://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield images
    server.shutdown()
    server.server_close()
