"""Keeps the webhooks served and trusted: fresh certificates here, the same trust over there.

Runs in every replica: all notice certificates that another one renewed, and the leader renews
them and tells the API server whom to trust.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta

from novacron.runtime.certificates import CertificateSecret
from novacron.runtime.errors import ApiError
from novacron.runtime.webhook import WebhookServer
from novacron.runtime.webhook_configuration import WebhookConfiguration

__all__ = ["WebhookUpkeep"]

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class WebhookUpkeep:
    """One replica's part in keeping the webhooks' certificates."""

    server: WebhookServer
    secret: CertificateSecret
    configuration: WebhookConfiguration
    leads: Callable[[], bool]
    every: timedelta = timedelta(minutes=1)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _trusted: bytes = b""

    async def run(self) -> None:
        """Look after the certificates until cancelled; failures are logged and tried again."""
        while True:
            try:
                await self.once()
            except ApiError as error:
                logger.warning("the webhooks' certificates wait: %s", error)
            await self.sleep(self.every.total_seconds())

    async def once(self) -> None:
        """Do one round; a new leader calls this at once, so that calls come to it.

        The time between rounds is what the API server has to learn of a new authority before it
        meets a certificate signed by it.
        """
        if not self.leads():
            self.server.use(await self.secret.load())
            return
        certificates = await self.secret.renew(self._trusted)
        self.server.use(certificates)
        await self.configuration.write(certificates.authorities)
        self._trusted = certificates.authorities
