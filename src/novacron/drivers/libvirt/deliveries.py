"""Images on their way to a host: each is brought once for all who want it from the same place.

What nobody wants any more ends, wherever it is: waiting for a place, for its source, or half-way.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from novacron.core.errors import DriverError
from novacron.core.machine import MachinePlan
from novacron.drivers.libvirt.build import Builder
from novacron.drivers.libvirt.progress import Progress
from novacron.drivers.libvirt.stock import InStock, Stock
from novacron.drivers.libvirt.unforeseen import unforeseen
from novacron.images import Located

__all__ = ["Deliveries", "Delivery", "Work"]

Work = Callable[[Callable[[Builder], Any]], Awaitable[Any]]
Key = tuple[str, ...]


@dataclass(slots=True)
class Delivery:
    """An image on its way, for as many as want it."""

    task: "asyncio.Task[InStock]"
    progress: Progress
    begun: float
    wanted: int = 0


@dataclass(slots=True)
class Deliveries:
    """Has images brought by ``carry``, which is for what takes long."""

    stock: Stock
    carry: Work
    _under_way: dict[Key, Delivery] = field(default_factory=dict)

    def find(self, located: Located, plan: MachinePlan) -> Delivery | None:
        """Return the one on its way that a machine could share."""
        return self._under_way.get(_key(located, plan))

    @contextmanager
    def wanted(self, located: Located, plan: MachinePlan) -> Iterator[Delivery]:
        """Have an image brought, or share in one that is, for as long as this is wanted."""
        key = _key(located, plan)
        if (delivery := self._under_way.get(key)) is None:
            delivery = self._under_way[key] = self._begun(located, plan)
            delivery.task.add_done_callback(lambda _: self._ended(key, delivery))
        delivery.wanted += 1
        try:
            yield delivery
        finally:
            delivery.wanted -= 1
            if not delivery.wanted:
                self._ended(key, delivery)
                delivery.progress.unwanted = True
                delivery.task.cancel()

    def _begun(self, located: Located, plan: MachinePlan) -> Delivery:
        progress = Progress()

        def bring(builder: Builder) -> InStock:
            return self.stock.ensure(builder.pool, located, plan.pull, progress)

        task = asyncio.create_task(self._brought(bring))
        return Delivery(task, progress, asyncio.get_running_loop().time())

    async def _brought(self, bring: Callable[[Builder], InStock]) -> InStock:
        try:
            found: InStock = await self.carry(bring)
        except DriverError:
            raise
        except Exception as error:
            # Told here, once, and not by each who waits for it.
            raise unforeseen("bringing an image", error) from error
        return found

    def _ended(self, key: Key, delivery: Delivery) -> None:
        if self._under_way.get(key) is delivery:
            del self._under_way[key]
        if delivery.task.done() and not delivery.task.cancelled():
            delivery.task.exception()  # everybody who wanted it may have gone


def _key(located: Located, plan: MachinePlan) -> Key:
    """Return what is the same for all who can share one delivery.

    Not its checksum alone: whoever names one may name it with a source that never gives it. Nor
    the place alone: what the catalogue names may be reached where others may not.
    """
    return located.source, located.identity, located.checksum or "", plan.pull
