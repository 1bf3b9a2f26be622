"""The webhook server over real TLS."""

import asyncio
import io
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import aiohttp
import pytest

from novacron.runtime.admission import Webhooks
from novacron.runtime.bind import Bind, PortTaken
from novacron.runtime.certificate_pair import Certificates, Lifetimes
from novacron.runtime.issuing import fresh
from novacron.runtime.resource import Object, Resource
from novacron.runtime.webhook import LARGEST_BODY, WebhookServer

WIDGETS = Resource("tests.novacron.io", "v1", "widgets", "Widget")
PATH = "/validate/widgets.tests.novacron.io"
BIND = Bind("127.0.0.1", 0, "webhooks", "--webhook-bind-addr")
REVIEW = {"apiVersion": "admission.k8s.io/v1", "request": {"uid": "u", "operation": "CREATE"}}


def new_certificates() -> Certificates:
    return fresh(("localhost", "127.0.0.1"), datetime.now(UTC), Lifetimes())


def trusting(*certificates: Certificates) -> ssl.SSLContext:
    bundle = b"".join(each.authorities for each in certificates)
    return ssl.create_default_context(cadata=bundle.decode())


def accept(obj: Object, old: Object | None, operation: str) -> list[str]:
    return []


@asynccontextmanager
async def serving(certificates: Certificates) -> AsyncIterator[WebhookServer]:
    webhooks = Webhooks()
    webhooks.validate(WIDGETS, accept)
    server = WebhookServer(webhooks, BIND, stop_within=timedelta(seconds=2))
    await server.start(certificates)
    try:
        yield server
    finally:
        await server.stop()


@asynccontextmanager
async def client(trust: ssl.SSLContext) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust)) as session:
        yield session


async def post(session: aiohttp.ClientSession, server: WebhookServer) -> bool:
    url = f"https://127.0.0.1:{server.port}{PATH}?timeout=5s"
    async with session.post(url, json=REVIEW) as response:
        assert response.status == 200, await response.text()
        allowed = (await response.json())["response"]["allowed"]
        assert isinstance(allowed, bool)
        return allowed


def served_certificate(server: WebhookServer, trust: ssl.SSLContext) -> bytes | None:
    with (
        socket.create_connection(("127.0.0.1", server.port)) as plain,
        trust.wrap_socket(plain, server_hostname="127.0.0.1") as secured,
    ):
        return secured.getpeercert(binary_form=True)


async def test_a_review_is_answered_over_verified_tls() -> None:
    """The API server trusts our authority only, and checks the address."""
    certificates = new_certificates()
    async with serving(certificates) as server, client(trusting(certificates)) as session:
        assert server.check() is None
        assert await post(session, server)


async def test_certificates_are_replaced_without_a_break() -> None:
    """New handshakes get the new pair while open connections go on under the old one."""
    old, new = new_certificates(), new_certificates()
    both = trusting(old, new)
    async with serving(old) as server, client(both) as session:
        assert await post(session, server)
        before = await asyncio.to_thread(served_certificate, server, both)
        server.use(new)
        after = await asyncio.to_thread(served_certificate, server, trusting(new))
        assert before != after
        assert await post(session, server)


async def test_old_protocols_are_refused() -> None:
    """TLS 1.1 is broken, and no API server asks for it."""
    certificates = new_certificates()
    ancient = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    ancient.load_verify_locations(cadata=certificates.authorities.decode())
    ancient.set_ciphers("DEFAULT:@SECLEVEL=0")
    ancient.options &= ~ssl.OP_NO_TLSv1_1
    with pytest.warns(DeprecationWarning, match="TLSv1_1 is deprecated"):
        ancient.maximum_version = ssl.TLSVersion.TLSv1_1
    async with serving(certificates) as server:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await asyncio.to_thread(served_certificate, server, ancient)
        await asyncio.sleep(0.1)  # the server closes its end a moment after the refusal


async def test_requests_that_are_no_reviews_get_a_plain_answer() -> None:
    """Somebody who opens the port in a browser, and somebody who sends without end."""
    certificates = new_certificates()
    async with serving(certificates) as server, client(trusting(certificates)) as session:
        base = f"https://127.0.0.1:{server.port}"
        async with session.get(base + PATH) as response:
            assert (response.status, await response.text()) == (405, "reviews are sent by POST")
        async with session.post(base + "/nowhere", data=b"{}") as response:
            assert (response.status, await response.text()) == (
                404,
                "nothing is served at /nowhere",
            )
        async with session.post(base + PATH, data=io.BytesIO(bytes(LARGEST_BODY + 1))) as response:
            assert response.status == 413


async def test_a_taken_port_names_the_webhook_flag() -> None:
    """One sentence that says what to change."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        bind = Bind("127.0.0.1", taken.getsockname()[1], "webhooks", "--webhook-bind-addr")
        server = WebhookServer(Webhooks(), bind)
        with pytest.raises(PortTaken, match=r"for webhooks: already in use.*--webhook-bind-addr"):
            await server.start(new_certificates())
        assert server.check()


async def test_stopping_waits_for_no_idle_connection() -> None:
    """The API server keeps idle connections open for a minute and a half."""
    certificates = new_certificates()
    async with serving(certificates) as server, client(trusting(certificates)) as session:
        assert await post(session, server)
        async with asyncio.timeout(20):
            await server.stop()
        assert server.check() == "not listening on 127.0.0.1:0 yet"
        with pytest.raises(aiohttp.ClientConnectionError):
            await post(session, server)
