"""HTTP as the API server wants it: sockets, headers, timeouts, and errors out of answers.

Knows aiohttp and nothing of resources; only ``client`` uses it.
"""

import socket
from typing import Any

import aiohttp
import orjson

from novacron.runtime.connection import Connection
from novacron.runtime.errors import ApiError, error_for

__all__ = ["NO_ANSWER", "WATCH_PATIENCE", "error_from", "hang_up", "open_session"]

NO_ANSWER = (aiohttp.ClientError, TimeoutError, OSError)

# A quiet watch hears a bookmark about once a minute, but the first only when something, however
# far away, was written (seen: after two minutes). Far longer silence is a server that hangs.
WATCH_PATIENCE = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=300)
# One line of a watch is one object; etcd takes at most 1.5 MiB of one.
LARGEST_LINE = 8 * 2**20
LONGEST_MESSAGE = 500

# A peer that vanished without a farewell is noticed after 15 + 3 * 10 seconds.
KEEPALIVE = {socket.TCP_KEEPIDLE: 15, socket.TCP_KEEPINTVL: 10, socket.TCP_KEEPCNT: 3}


def open_session(connection: Connection) -> aiohttp.ClientSession:
    """Return a session to one API server."""
    return aiohttp.ClientSession(
        # No limit on connections because the queue's workers are one.
        connector=aiohttp.TCPConnector(
            limit=0, ssl=connection.tls or True, socket_factory=_kept_alive
        ),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
        read_bufsize=LARGEST_LINE,
        cookie_jar=aiohttp.DummyCookieJar(),
        # Not compressed: within a cluster, bytes are cheaper than the CPU of both ends.
        headers={
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": "novacron",
        },
    )


def _kept_alive(address: tuple[Any, ...]) -> socket.socket:
    family, kind, protocol, *_ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in KEEPALIVE.items():
        made.setsockopt(socket.IPPROTO_TCP, option, value)
    return made


def hang_up(response: aiohttp.ClientResponse) -> None:
    """End an answer that was not read to its end; its connection is of no more use.

    TLS would say farewell and wait for the other's, which may outlive the event loop.
    """
    if response.connection is not None and response.connection.transport is not None:
        response.connection.transport.abort()
    response.close()


def error_from(response: aiohttp.ClientResponse, body: bytes) -> ApiError:
    """Return the error that an answer other than success stands for."""
    after = response.headers.get("Retry-After", "")
    return error_for(response.status, _status(body), float(after) if after.isdigit() else None)


def _status(body: bytes) -> dict[str, Any]:
    # Something in between answers in its own words, and may call any of them JSON.
    try:
        status = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {"message": body[:LONGEST_MESSAGE].decode(errors="replace").strip()}
    return status if isinstance(status, dict) else {}
