"""Keeps the webhooks served and trusted: fresh certificates here, the same trust over there.

Runs in every replica: all notice certificates that another one renewed, and the leader renews
them and tells the API server whom to trust.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from novacron.runtime.certificates import CertificateSecret
from novacron.runtime.errors import ApiError
from novacron.runtime.webhook import WebhookServer
from novacron.runtime.webhook_configuration import WebhookConfiguration

__all__ = ["WebhookUpkeep"]

logger = logging.getLogger(__name__)

AFTER_FAILURE = timedelta(seconds=5)
# How soon a new leader notices that it is one; asking costs no request.
GLANCE = timedelta(seconds=0.5)


@dataclass(slots=True)
class WebhookUpkeep:
    """One replica's part in keeping the webhooks' certificates.

    The time between rounds is what the API server has to learn of a new authority before it
    meets a certificate signed by it.
    """

    server: WebhookServer
    secret: CertificateSecret
    configuration: WebhookConfiguration
    leads: Callable[[], bool]
    every: timedelta = timedelta(minutes=1)
    _trusted: bytes = b""

    async def run(self) -> None:
        """Look after the certificates until cancelled; failures are logged and tried again."""
        while True:
            led = self.leads()
            pause = self.every
            try:
                await self.once()
            except ApiError as error:
                logger.warning("the webhooks' certificates wait: %s", error)
                pause = AFTER_FAILURE
            await self._rest(pause, led=led)

    async def once(self) -> None:
        """Do one round."""
        if not self.leads():
            self.server.use(await self.secret.load())
            return
        certificates = await self.secret.renew(self._trusted)
        self.server.use(certificates)
        await self.configuration.write(certificates.authorities)
        self._trusted = certificates.authorities

    def check(self) -> str | None:
        """Say why the API server cannot use the webhooks, or nothing when it can."""
        if self.leads() and not self._trusted:
            return "the API server has not been told of them yet"
        return self.server.check()

    async def _rest(self, pause: timedelta, *, led: bool) -> None:
        """Wait for the next round, which comes at once when this replica begins to lead."""
        for _ in range(max(1, pause // GLANCE)):
            if self.leads() != led:
                return
            await asyncio.sleep(GLANCE.total_seconds())
