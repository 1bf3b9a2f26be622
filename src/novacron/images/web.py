"""Reads images by http and https, from the beginning or from where an earlier try broke off.

Whoever sends a byte every now and then is waited for no longer than whoever sends nothing.
"""

import http.client
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import urljoin, urlsplit, urlunsplit

from novacron.core.errors import Busy, Rejected
from novacron.images.bytes import Opened
from novacron.images.reach import Reach
from novacron.images.timely import Answer, seconds_until

__all__ = ["WebBytes", "shown_url"]

# For a piece of an image, and for a connection to one of a server's addresses.
SILENCE_SECONDS = 10.0
# Until a server has said what it has, with all that it redirects to on the way.
ANSWER_SECONDS = 15.0
LATER = timedelta(seconds=5)
AGAIN = timedelta(seconds=20)
MOST_REDIRECTS = 5
REDIRECTS = (301, 302, 303, 307, 308)
MISSING = (401, 403, 404, 410)
DEFAULT_PORTS = {"http": 80, "https": 443}

Headers = Callable[[], Mapping[str, str]]


def _plain() -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, slots=True)
class WebBytes:
    """An address on the web.

    ``trusted`` says that an administrator named it, so it may be at home; where it redirects to
    may not. ``headers`` are made anew for each request, and sent nowhere but to the address itself.
    """

    url: str
    reach: Reach
    trusted: bool = False
    headers: Headers = _plain
    name: str = ""

    @property
    def shown(self) -> str:
        """Return the address without what may be secret in it."""
        return self.name or shown_url(self.url)

    @property
    def identity(self) -> str:
        """Return the address."""
        return self.url

    @contextmanager
    def open(self, start: int = 0, validator: str = "") -> Iterator[Opened]:
        """Ask for the bytes."""
        wanted: dict[str, str] = {}
        if start:
            wanted["Range"] = f"bytes={start}-"
            if validator:
                wanted["If-Range"] = validator
        with ExitStack() as stack:
            with self._reading():
                answer = self._followed(wanted, stack)
            yield _opened(answer, start)

    def _followed(self, wanted: Mapping[str, str], stack: ExitStack) -> Answer:
        url, trusted, own = self.url, self.trusted, dict(self.headers())
        until = time.monotonic() + ANSWER_SECONDS
        for _ in range(MOST_REDIRECTS + 1):
            stack.close()
            connected = _connected(url, self.reach, until, trusted=trusted)
            connection = stack.enter_context(closing(connected))
            connection.request("GET", _target(url), headers={**_usual(url), **own, **wanted})
            answer = stack.enter_context(closing(Answer(connection.sock, until, SILENCE_SECONDS)))
            if answer.status not in REDIRECTS or "Location" not in answer.headers:
                self._require_success(answer)
                return answer
            onward = urljoin(url, answer.headers["Location"])
            self._require_secure(url, onward)
            # What a server redirects to was not named by anybody whom we trust.
            trusted = trusted and urlsplit(onward).netloc == urlsplit(url).netloc
            url, own = onward, own if trusted else {}
        raise Rejected(
            f"image {self.shown} is redirected more than {MOST_REDIRECTS} times",
            reason="ImageNotFound",
            again=AGAIN,
        )

    def _require_success(self, answer: http.client.HTTPResponse) -> None:
        if answer.status in (200, 206):
            return
        message = f"image {self.shown}: the server says {answer.status} {answer.reason}"
        if region := answer.headers.get("x-amz-bucket-region"):
            message += f"; the bucket is in region {region}"
        if answer.status in MISSING:
            raise Rejected(message, reason="ImageNotFound", again=AGAIN)
        raise Busy(message, LATER, reason="ImageUnreachable")

    def _require_secure(self, url: str, onward: str) -> None:
        scheme = urlsplit(onward).scheme
        if scheme not in DEFAULT_PORTS or (url.startswith("https:") and scheme != "https"):
            raise Rejected(
                f"image {self.shown} is redirected from {urlsplit(url).scheme} to "
                f"{shown_url(onward)}",
                reason="InsecureRedirect",
            )

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (OSError, http.client.HTTPException) as error:
            message = f"image {self.shown} cannot be read: {error}"
            raise Busy(message, LATER, reason="ImageUnreachable") from error
        except ValueError as error:
            message = f"image {self.shown} has an address that cannot be used: {error}"
            raise Rejected(message, reason="ImageNotFound") from error


def shown_url(url: str) -> str:
    """Return an address without what may be secret in it: user, password, query."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _connected(
    url: str, reach: Reach, until: float, *, trusted: bool
) -> http.client.HTTPConnection:
    """Connect to an address that was looked at; the name is used for TLS and as Host only."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or DEFAULT_PORTS[parts.scheme]
    last: OSError | None = None
    for address in reach.addresses(host, port, trusted=trusted):
        try:
            patience = min(SILENCE_SECONDS, seconds_until(until))
            plain = socket.create_connection((address, port), patience)
        except OSError as error:
            last = error
            continue
        connection = http.client.HTTPConnection(host, port, timeout=SILENCE_SECONDS)
        connection.sock = _secured(plain, host) if parts.scheme == "https" else plain
        return connection
    raise last or OSError("its name has no address")


def _secured(plain: socket.socket, host: str) -> socket.socket:
    try:
        return ssl.create_default_context().wrap_socket(plain, server_hostname=host)
    except BaseException:
        plain.close()
        raise


def _target(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(("", "", parts.path or "/", parts.query, ""))


def _usual(url: str) -> dict[str, str]:
    return {
        "Host": urlsplit(url).netloc.rpartition("@")[2],
        "User-Agent": "novacron",
        "Accept-Encoding": "identity",
    }


def _opened(answer: Answer, asked: int) -> Opened:
    start = asked if answer.status == 206 else 0
    length = None if answer.length is None else answer.length + start
    tag, changed = (answer.headers.get(name) or "" for name in ("ETag", "Last-Modified"))
    validator = tag if tag and not tag.startswith("W/") else changed
    version = f"{tag} {changed} {length or ''}" if tag or changed else ""
    return Opened(answer, start, length, version, validator)
