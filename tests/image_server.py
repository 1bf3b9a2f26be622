"""A server of images that does what real ones do, also wrong."""

import http.server
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

__all__ = ["ImageServer", "image_server"]

CHUNK = 64 * 1024


@dataclass
class ImageServer:
    """Serves bytes by path; a path may stop half-way, every time or once, or not exist.

    With ``ranges`` it gives the rest of what it gave before and marks what it gives; ``pause`` is
    for how long it rests between two pieces, ``served`` how many bytes it gave in all.
    It goes no further than ``stops_at``, for as long as that is so.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    torn: set[str] = field(default_factory=set)
    torn_once: set[str] = field(default_factory=set)
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
        self.send_header("Content-Length", str(len(content) - start))
        if images.ranges:
            self.send_header("ETag", tag(content))
            if start:
                length = len(content)
                self.send_header("Content-Range", f"bytes {start}-{length - 1}/{length}")
        self.end_headers()
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


@contextmanager
def image_server() -> Iterator[ImageServer]:
    """Serve images on loopback."""
    images = ImageServer()
    handler = type("OwnHandler", (Handler,), {"images": images})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    images.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield images
    server.shutdown()
    server.server_close()
