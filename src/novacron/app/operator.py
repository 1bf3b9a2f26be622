"""One operator process: its parts, how they are joined, and how they start and stop."""

import asyncio
import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from prometheus_client import CollectorRegistry

from novacron.app.controllers import Controllers
from novacron.app.registry import chosen
from novacron.app.rights import RECORDS
from novacron.app.settings import Settings
from novacron.app.webhooks import webhook_upkeep
from novacron.controllers.drivers import MakeDriver
from novacron.families.seal import Seal
from novacron.runtime.bind import Bind
from novacron.runtime.claims import Claims
from novacron.runtime.client import Client
from novacron.runtime.leases import ApiLeases
from novacron.runtime.membership import Membership
from novacron.runtime.metrics import RuntimeMetrics
from novacron.runtime.ownership import Ownership, Sole
from novacron.runtime.resource import Key
from novacron.runtime.server import StatusServer
from novacron.runtime.shared_key import KEY_BYTES, shared_key
from novacron.runtime.webhook_upkeep import WebhookUpkeep

__all__ = ["Operator", "utc_now"]

log = logging.getLogger(__name__)


def utc_now() -> datetime:
    """Return the time to write into statuses, which have whole seconds."""
    return datetime.now(UTC).replace(microsecond=0)


@dataclass(slots=True)
class Operator:
    """The whole of one process. ``client`` connects as the operator and has no fence yet."""

    settings: Settings
    client: Client
    makers: dict[str, MakeDriver]
    now: Callable[[], datetime] = utc_now
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    # Until it is known what all replicas seal with, nobody's records are believed.
    seal: Seal = field(default_factory=lambda: Seal(secrets.token_bytes(KEY_BYTES)), repr=False)

    async def run(self) -> None:
        """Work until told to stop or something ends that must not; then leave in good order."""
        registry = CollectorRegistry()
        metrics = RuntimeMetrics(registry)
        self.client.observer = metrics
        families = chosen(self.settings.families)
        ownership, fenced = self._ownership()
        async with self.client, fenced:
            controllers = Controllers(
                self.settings,
                families,
                fenced,
                self.client,
                ownership,
                metrics,
                self.makers,
                self.now,
                self.seal,
            )
            for collector in controllers.collectors:
                registry.register(collector)
            ownership.gained = controllers.gained
            ownership.drain = controllers.drain
            ownership.begun = controllers.begun
            upkeep = webhook_upkeep(
                self.settings,
                self.client,
                lambda: ownership.leader,
                controllers.ledger.occupancy,
            )
            server = self._status_server(registry, controllers, upkeep)
            await server.start()
            try:
                await self._work(controllers, ownership, upkeep)
            finally:
                await server.stop()

    def _ownership(self) -> tuple[Sole | Claims, Client]:
        if not self.settings.leader_elect:
            return Sole(), replace(self.client)
        leases = ApiLeases(self.client, self.settings.namespace)
        membership = Membership(leases)
        return Claims(membership, self.settings.shards), replace(self.client, fence=membership)

    def _status_server(
        self, registry: CollectorRegistry, controllers: Controllers, upkeep: WebhookUpkeep | None
    ) -> StatusServer:
        settings = self.settings
        ready = {"caches": controllers.check}
        if upkeep:
            ready["webhooks"] = upkeep.check
        return StatusServer(
            Bind.parse(
                settings.health_probe_bind_addr, purpose="probes", flag="--health-probe-bind-addr"
            ),
            Bind.parse(settings.metrics_bind_addr, purpose="metrics", flag="--metrics-bind-addr"),
            registry,
            ready=ready,
        )

    async def _work(
        self, controllers: Controllers, ownership: Ownership, upkeep: WebhookUpkeep | None
    ) -> None:
        self.seal.key = await shared_key(self.client, Key(self.settings.namespace, RECORDS))
        if upkeep:
            await upkeep.server.start(await upkeep.secret.load())
        owning = asyncio.create_task(ownership.run(), name="ownership")
        parts = [*controllers.parts(), *([upkeep.run()] if upkeep else [])]
        tasks = [asyncio.create_task(part) for part in parts]
        try:
            await self._until_stopped(owning, tasks)
        finally:
            async with asyncio.timeout(self.settings.stop_deadline.total_seconds()):
                await self._leave(controllers, ownership, owning, tasks)
                if upkeep:
                    await upkeep.server.stop()

    async def _until_stopped(
        self, owning: "asyncio.Task[None]", tasks: list["asyncio.Task[None]"]
    ) -> None:
        stop = asyncio.create_task(self.stopping.wait(), name="stop")
        done, _ = await asyncio.wait({stop, owning, *tasks}, return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        for task in done - {stop}:
            task.result()
            raise RuntimeError(f"{task.get_coro()} ended, which it must not")

    async def _leave(
        self,
        controllers: Controllers,
        ownership: Ownership,
        owning: "asyncio.Task[None]",
        tasks: list["asyncio.Task[None]"],
    ) -> None:
        """Finish what is in hand, hand over, tell what is left to tell, let go."""
        log.info("stopping")
        ownership.stop()
        await asyncio.wait({owning})
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        await controllers.close()
