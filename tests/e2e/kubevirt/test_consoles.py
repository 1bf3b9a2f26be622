"""Consoles and screens of Machines: what real virt-api says, and what its protocol carries."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from websockets.asyncio.server import ServerConnection, serve

from e2e.kubevirt.machines import MachineStage
from novacron.core.errors import DriverError
from novacron.core.machine import MachineRef
from novacron.drivers.kubevirt import Cluster, KubeVirtDriver
from novacron.runtime.client import Client
from novacron.runtime.connection import Connection
from novacron.runtime.credentials import StaticToken

REF = MachineRef("uid", "default", "web", "kubevirt://")


def novacron(stage: MachineStage, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run our command line as a user of the cluster."""
    where = ("--kubeconfig", str(stage.bed.kubeconfig), "-n", stage.bed.namespace)
    command = [sys.executable, "-m", "novacron.app.entry", *words, *where]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_a_console_is_opened_through_the_real_virt_api(stage: MachineStage) -> None:
    """At its other end is the stand-in for nodes, which says so."""
    stage.declare("talker")
    stage.until_running("talker")
    said = novacron(stage, "console", "machine/talker")
    assert said.returncode == 0
    assert "This is a stand-in: no guest runs here." in said.stdout
    log = novacron(stage, "console", "machine/talker", "--log")
    assert "-c guest-console-log" in log.stderr
    screen = novacron(stage, "vnc", "machine/talker")
    assert "novacron vnc machine/talker --proxy" in screen.stdout
    assert "no machine" in novacron(stage, "console", "machine/nobody").stderr
    stage.change("talker", running=False)
    stage.until("talker", lambda obj: obj["status"]["phase"] == "Stopped")
    refused = novacron(stage, "console", "machine/talker")
    assert refused.returncode == 1
    assert refused.stderr.startswith("error: talker runs on no host now; it is Stopped")
    assert "Traceback" not in refused.stderr


@asynccontextmanager
async def recorded(asked: list[tuple[str, str]]) -> AsyncIterator[KubeVirtDriver]:
    """A driver of a cluster that speaks virt-api's protocol: plain bytes in binary messages."""

    async def answer(websocket: ServerConnection) -> None:
        request = websocket.request
        assert request is not None
        asked.append((request.path, request.headers["Authorization"]))
        async for message in websocket:
            assert isinstance(message, bytes)
            await websocket.send(b"guest: " + message)

    async with serve(answer, "127.0.0.1", 0, subprotocols=["plain.kubevirt.io"]) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        connection = Connection(f"http://127.0.0.1:{port}", None, StaticToken("secret"))

        @asynccontextmanager
        async def connect() -> AsyncIterator[Client]:
            yield Client(connection)

        async def nothing(namespace: str, source: object) -> bytes | None:
            return None

        yield KubeVirtDriver(Cluster("there", connect), nothing)


async def test_a_console_carries_bytes_both_ways_with_the_users_credentials() -> None:
    asked: list[tuple[str, str]] = []
    async with recorded(asked) as driver:
        stream = await driver.console(REF)
        await stream.write(b"ls\r")
        assert await stream.read() == b"guest: ls\r"
        await stream.close()
        assert await stream.read() == b""
    base = "/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachineinstances/web"
    assert asked == [(f"{base}/console", "Bearer secret")]


async def test_a_screen_is_a_socket_for_whoever_looks() -> None:
    asked: list[tuple[str, str]] = []
    async with recorded(asked) as driver:
        reader, writer = await asyncio.open_connection(sock=await driver.open_display(REF))
        writer.write(b"RFB 003.008\n")
        async with asyncio.timeout(5):
            assert await reader.readexactly(19) == b"guest: RFB 003.008\n"
        writer.close()
    assert asked[0][0].endswith("/vnc")


REFUSALS = {
    "off": (
        409,
        'vmi \\"web\\" is not running',
        "NotRunning",
        "it does not run: vmi .*running",
    ),
    "not allowed": (403, "no", "Forbidden", "may not open its console: no; ask for the right"),
    "broken": (500, "no handler", "KubeVirtApiError", "KubeVirt opens no console: no handler"),
}


@pytest.mark.parametrize(("code", "said", "reason", "sentence"), REFUSALS.values(), ids=REFUSALS)
async def test_what_virt_api_answers_instead_of_a_console_is_told(
    code: int, said: str, reason: str, sentence: str
) -> None:
    async def refuse(connection: ServerConnection, request: object) -> object:
        body = f'{{"kind":"Status","message":"{said}"}}'.encode()
        response = connection.respond(code, "")
        response.body = body
        response.headers.clear()
        response.headers["Content-Length"] = str(len(body))
        return response

    async def nobody(websocket: ServerConnection) -> None:
        del websocket

    async with serve(nobody, "127.0.0.1", 0, process_request=refuse) as server:
        port = next(iter(server.sockets)).getsockname()[1]

        @asynccontextmanager
        async def connect() -> AsyncIterator[Client]:
            yield Client(Connection(f"http://127.0.0.1:{port}", None, StaticToken("x")))

        async def nothing(namespace: str, source: object) -> bytes | None:
            return None

        driver = KubeVirtDriver(Cluster("there", connect), nothing)
        with pytest.raises(DriverError, match=sentence) as refusal:
            await driver.console(REF)
        assert refusal.value.reason == reason
