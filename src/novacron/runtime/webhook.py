"""The HTTPS server at which the API server asks for reviews.

Two calls come with every object created, so it is aiohttp's low-level server: no router, no
middlewares, no access log. What the answers are is ``admission``'s business.
"""

import asyncio
import ssl
from dataclasses import dataclass, field
from datetime import timedelta

from aiohttp import StreamReader, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_parser import RawRequestMessage
from aiohttp.web_protocol import RequestHandler

from novacron.runtime.admission import Webhooks
from novacron.runtime.bind import Bind
from novacron.runtime.certificate_pair import Certificates

__all__ = ["WebhookServer"]

# etcd takes objects up to 1.5 MiB; an update comes with the old and the new one.
LARGEST_BODY = 8 * 2**20
# Longer than the API server keeps idle connections (90 s), so that it is the one to close them
# and never sends a review into a connection that is just going away.
KEEP_ALIVE_SECONDS = 300.0
SMALLEST_TLS = ssl.TLSVersion.TLSv1_2


@dataclass(slots=True)
class WebhookServer:
    """Serves the registered webhooks over TLS."""

    webhooks: Webhooks
    bind: Bind
    stop_within: timedelta = timedelta(seconds=5)
    port: int = 0
    _tls: ssl.SSLContext = field(default_factory=lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
    _runner: web.ServerRunner | None = None
    _installed: Certificates | None = field(default=None, repr=False)

    async def start(self, certificates: Certificates) -> None:
        """Listen; raise PortTaken when somebody else does."""
        self._tls.minimum_version = SMALLEST_TLS
        self.use(certificates)
        server = web.Server(
            self._answer,
            request_factory=_request,
            access_log=None,
            keepalive_timeout=KEEP_ALIVE_SECONDS,
        )
        # aiohttp waits this long for answers and as long again for cancelled ones.
        patience = self.stop_within.total_seconds() / 2
        runner = web.ServerRunner(server, shutdown_timeout=patience)
        self.port = await self.bind.listen(runner, self._tls)
        self._runner = runner

    def use(self, certificates: Certificates) -> None:
        """Present these in all new handshakes; connections that are open stay."""
        if certificates != self._installed:
            certificates.install(self._tls)
            self._installed = certificates

    def check(self) -> str | None:
        """Say why the webhooks are not served, or nothing when they are."""
        return None if self._runner else f"not listening on {self.bind} yet"

    async def stop(self) -> None:
        """Stop listening; answers under way have the deadline to finish."""
        runner, self._runner = self._runner, None
        if runner:
            await runner.cleanup()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.method != "POST":
            return web.Response(status=405, text="reviews are sent by POST")
        reply = self.webhooks.answer(request.path, await request.read())
        kind = "application/json" if reply.status == 200 else "text/plain"
        return web.Response(status=reply.status, body=reply.body, headers={"Content-Type": kind})


def _request(
    message: RawRequestMessage,
    payload: StreamReader,
    protocol: RequestHandler,
    writer: AbstractStreamWriter,
    task: "asyncio.Task[None]",
) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return web.BaseRequest(
        message, payload, protocol, writer, task, loop, client_max_size=LARGEST_BODY
    )
