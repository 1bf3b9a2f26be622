"""Asking a container how it is: by HTTP, by a connection, or by a command inside it."""

import asyncio
import ssl
import sys
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from novacron.localcluster.node.enter import Errand
from novacron.runtime.resource import Object

__all__ = ["Answer", "ask_command", "ask_http", "ask_tcp", "port_of"]

LONGEST_WORDS = 200
LONGEST_HEAD = 2**14


class Answer(NamedTuple):
    """What came of asking once."""

    good: bool
    words: str = ""


def port_of(container: Object, port: int | str) -> int:
    """Return the number of a port that may be given by its name; 0 when there is none such."""
    if isinstance(port, int) or port.isdecimal():
        return int(port)
    named = {each.get("name"): each["containerPort"] for each in container.get("ports") or ()}
    return int(named.get(port) or 0)


async def ask_tcp(host: str, port: int) -> Answer:
    """Say whether somebody listens."""
    try:
        _, writer = await asyncio.open_connection(host, port)
    except OSError as error:
        return Answer(good=False, words=f"{host}:{port}: {error.strerror or error}")
    writer.close()
    return Answer(good=True)


async def ask_http(host: str, port: int, action: Object) -> Answer:
    """Say whether a GET is answered with a success; who answers is not examined."""
    tls = _trusting() if action.get("scheme") == "HTTPS" else None
    path = action.get("path") or "/"
    try:
        reader, writer = await asyncio.open_connection(host, port, ssl=tls, limit=LONGEST_HEAD)
    except OSError as error:
        return Answer(good=False, words=f"{host}:{port}{path}: {error.strerror or error}")
    try:
        writer.write(_request(host, port, path, action))
        status = await reader.readline()
        code = int(status.split()[1])
    except (OSError, ValueError, IndexError) as error:
        return Answer(good=False, words=f"{host}:{port}{path}: no HTTP answer ({error})")
    finally:
        writer.transport.abort()
    return Answer(200 <= code < 400, f"HTTP probe failed with statuscode: {code}")


async def ask_command(errand: Errand) -> Answer:
    """Say whether a command inside the container ends well."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "novacron.localcluster.node.enter",
        stdin=PIPE, stdout=PIPE, stderr=STDOUT,
    )  # fmt: skip
    try:
        output, _ = await process.communicate(errand.encode())
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    words = output[-LONGEST_WORDS:].decode(errors="replace").strip()
    return Answer(process.returncode == 0, words or f"exit code {process.returncode}")


def _request(host: str, port: int, path: str, action: Object) -> bytes:
    headers: Mapping[str, str] = {
        "Host": f"{host}:{port}",
        "User-Agent": "kube-probe/novacron-local",
        "Accept": "*/*",
        "Connection": "close",
        **{each["name"]: each["value"] for each in action.get("httpHeaders") or ()},
    }
    lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def _trusting() -> ssl.SSLContext:
    # Probes of Kubernetes do not examine certificates: they ask whether, not who.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
