"""The HTTPS server at which the API server asks for reviews.

What the answers are is ``admission``'s business.
"""

import ssl
from dataclasses import dataclass, field
from datetime import timedelta

from novacron.runtime.admission import Webhooks
from novacron.runtime.bind import Bind
from novacron.runtime.certificate_pair import Certificates
from novacron.runtime.http_server import PLAIN, Ask, HttpServer, Reply

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
    _server: HttpServer | None = None
    _installed: Certificates | None = field(default=None, repr=False)

    async def start(self, certificates: Certificates) -> None:
        """Listen; raise PortTaken when somebody else does."""
        self._tls.minimum_version = SMALLEST_TLS
        self.use(certificates)
        server = HttpServer(
            self._answer, largest_body=LARGEST_BODY, keep_alive_seconds=KEEP_ALIVE_SECONDS
        )
        self.port = await self.bind.listen(server, self._tls)
        self._server = server

    def use(self, certificates: Certificates) -> None:
        """Present these in all new handshakes; connections that are open stay."""
        if certificates != self._installed:
            certificates.install(self._tls)
            self._installed = certificates

    def check(self) -> str | None:
        """Say why the webhooks are not served, or nothing when they are."""
        return None if self._server else f"not listening on {self.bind} yet"

    async def stop(self) -> None:
        """Stop listening; answers under way have the deadline to finish."""
        server, self._server = self._server, None
        if server:
            await server.stop(self.stop_within.total_seconds())

    def _answer(self, ask: Ask) -> Reply:
        if ask.method != "POST":
            return Reply(405, b"reviews are sent by POST")
        status, body = self.webhooks.answer(ask.path, ask.body)
        return Reply(status, body, "application/json" if status == 200 else PLAIN)
