"""Reading images: what they amount to, and where they may come from."""

import hashlib
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from novacron.core.errors import Busy, Rejected
from novacron.images import open_image

DISK = (b"\0" * 510 + b"\x55\xaa").ljust(200_000, b"d")
DIGEST = hashlib.sha256(DISK).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves one disk in several ways."""

    def do_GET(self) -> None:
        if self.path.startswith("/moved"):
            self.send_response(302)
            self.send_header("Location", "/disk")
            self.end_headers()
            return
        if self.path.startswith("/broken"):
            self.send_error(503)
            return
        self.send_response(200)
        if "sized" not in self.path:
            self.send_header("Content-Length", str(len(DISK)))
        self.send_header("ETag", '"one"')
        self.end_headers()
        self.wfile.write(DISK)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    serving = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=serving.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{serving.server_port}"
    serving.shutdown()
    serving.server_close()


def nothing(_: str) -> Path | None:
    return None


def read(source: str, checksum: str | None = None) -> bytes:
    with open_image(source, checksum, nothing) as fetch:
        return b"".join(fetch.chunks())


@pytest.mark.parametrize("path", ["/disk", "/moved", "/unsized"])
def test_all_bytes_come_through(server: str, path: str) -> None:
    """With a length, after a redirect, and without a length."""
    assert read(server + path) == DISK


def test_the_checksum_is_of_all_bytes(server: str) -> None:
    """Right passes, wrong is refused at the end and tells what it was."""
    assert read(f"{server}/disk", f"sha256:{DIGEST}") == DISK
    with pytest.raises(Rejected, match=DIGEST) as refusal:
        read(f"{server}/disk", "sha256:" + "0" * 64)
    assert refusal.value.reason == "ChecksumMismatch"


def test_a_server_in_trouble_is_asked_again_later(server: str) -> None:
    """Only the image's owner can mend a missing one; a server mends itself."""
    with pytest.raises(Busy, match="503"):
        read(f"{server}/broken")


def test_nobody_listening_is_asked_again_later() -> None:
    """It may be about to start."""
    with pytest.raises(Busy) as trouble:
        read("http://127.0.0.1:9/disk")
    assert trouble.value.reason == "ImageUnreachable"


def test_passwords_and_tokens_of_an_address_are_never_told(server: str) -> None:
    """Messages end up in conditions and events."""
    address = server.replace("http://", "http://user:secret@") + "/broken?token=hidden"
    with pytest.raises((Busy, Rejected)) as trouble:
        read(address)
    assert "secret" not in str(trouble.value)
    assert "hidden" not in str(trouble.value)


def test_a_source_nobody_can_read_yet_says_so() -> None:
    """Accepted by the schema, not by us."""
    with pytest.raises(Rejected, match="s3://") as refusal:
        read("s3://bucket/disk")
    assert refusal.value.reason == "NotYetSupported"
