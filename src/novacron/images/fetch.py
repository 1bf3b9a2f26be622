"""Opens images for reading: those that come with us, and those behind http and https.

Reading blocks, so it belongs into a thread. A source that goes silent is given up, so whoever
reads is either making progress or has failed.
"""

import hashlib
import http.client
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit, urlunsplit

from novacron.core.errors import Busy, Rejected
from novacron.images.inspect import HEADER_BYTES, Inspected, inspect

__all__ = ["Fetch", "Images", "open_image"]

CHUNK = 1024 * 1024
SILENCE_SECONDS = 10.0
LATER = timedelta(seconds=5)
AGAIN = timedelta(seconds=20)

Images = Callable[[str], Path | None]


@dataclass(slots=True)
class Fetch:
    """An image being read: what it is, how long if that is known, and its bytes in pieces.

    ``chunks`` raises when the bytes end early or do not amount to the checksum, so nothing may
    be used before it has ended. ``version`` changes when what is behind the address does, as far
    as its server tells.
    """

    source: str
    inspected: Inspected
    length: int | None
    version: str
    _head: bytes
    _rest: IO[bytes]
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
            yield chunk
            with _readable(self.source):
                chunk = self._rest.read(CHUNK)
        if self.length is not None and self.done != self.length:
            raise Busy(
                f"image {_shown(self.source)} stopped after {self.done} of {self.length} bytes",
                LATER,
                reason="ImageIncomplete",
            )
        if wanted and digest.hexdigest() != wanted:
            raise Rejected(
                f"image {_shown(self.source)} has {algorithm}:{digest.hexdigest()}, "
                f"not the checksum that was asked for",
                reason="ChecksumMismatch",
                again=AGAIN,
            )


@contextmanager
def open_image(source: str, checksum: str | None, builtin: Images) -> Iterator[Fetch]:
    """Open an image and look at its beginning."""
    with ExitStack() as stack:
        with _readable(source):
            opened = stack.enter_context(_opened(source, builtin))
            head = _beginning(opened.stream)
        inspected = inspect(head, _shown(source))
        yield Fetch(source, inspected, opened.length, opened.version, head, opened.stream, checksum)


@dataclass(frozen=True, slots=True)
class _Opened:
    stream: IO[bytes]
    length: int | None
    version: str


@contextmanager
def _opened(source: str, builtin: Images) -> Iterator[_Opened]:
    scheme, _, rest = source.partition("://")
    if scheme == "builtin":
        path = builtin(rest)
        if path is None:
            raise Rejected(f"no built-in image is called {rest}", reason="ImageNotFound")
        with path.open("rb") as file:
            length = path.stat().st_size
            yield _Opened(file, length, str(length))
    elif scheme in ("http", "https"):
        request = urllib.request.Request(source, headers={"User-Agent": "novacron"})  # noqa: S310 - http(s) only
        with _opener().open(request, timeout=SILENCE_SECONDS) as answer:
            length = answer.headers.get("Content-Length")
            tags = [answer.headers.get(name) or "" for name in ("ETag", "Last-Modified")]
            version = " ".join([*tags, length or ""])
            yield _Opened(answer, int(length) if length else None, version)
    else:
        raise Rejected(
            f"images from {scheme}:// cannot be fetched yet; use http://, https:// or builtin://",
            reason="NotYetSupported",
        )


class _NoDowngrade(urllib.request.HTTPRedirectHandler):
    """Follows redirects, but never from https to http."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        """Return the request that follows a redirect."""
        if req.full_url.startswith("https:") and not newurl.startswith("https:"):
            raise Rejected(
                f"image {_shown(req.full_url)} is redirected from https to {_shown(newurl)}",
                reason="InsecureRedirect",
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(_NoDowngrade())


@contextmanager
def _readable(source: str) -> Iterator[None]:
    try:
        yield
    except urllib.error.HTTPError as error:
        missing = error.code in (401, 403, 404, 410)
        message = f"image {_shown(source)}: the server says {error.code} {error.reason}"
        if missing:
            raise Rejected(message, reason="ImageNotFound", again=AGAIN) from error
        raise Busy(message, LATER, reason="ImageUnreachable") from error
    except http.client.IncompleteRead as error:
        message = f"image {_shown(source)} stopped half-way"
        raise Busy(message, LATER, reason="ImageIncomplete") from error
    except (urllib.error.URLError, TimeoutError, http.client.HTTPException, OSError) as error:
        why = getattr(error, "reason", error)
        message = f"image {_shown(source)} cannot be read: {why}"
        raise Busy(message, LATER, reason="ImageUnreachable") from error


def _beginning(stream: IO[bytes]) -> bytes:
    head = b""
    while len(head) < HEADER_BYTES and (more := stream.read(HEADER_BYTES - len(head))):
        head += more
    return head


def _shown(source: str) -> str:
    """Return an address without what may be secret in it: user, password, query."""
    parts = urlsplit(source)
    if parts.scheme not in ("http", "https"):
        return source
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
