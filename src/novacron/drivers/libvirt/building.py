"""Machines that are being made right now: bringing an image takes longer than a call may."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import libvirt

from novacron.core.errors import Busy, DriverError, Rejected, Unreachable
from novacron.core.machine import MachinePlan
from novacron.drivers.libvirt.build import Builder
from novacron.drivers.libvirt.deliveries import Deliveries, Work
from novacron.drivers.libvirt.look import Domain, find
from novacron.drivers.libvirt.progress import Progress
from novacron.drivers.libvirt.seed import Seed, seed_of
from novacron.drivers.libvirt.snapshot_book import take_out
from novacron.drivers.libvirt.stock import InStock, Stock
from novacron.drivers.libvirt.unforeseen import unforeseen
from novacron.images import Locate, require_minimum

__all__ = ["Building", "made_at_once", "started_at_once"]

log = logging.getLogger(__name__)

MUCH_LATER = timedelta(minutes=5)
NOT_AT_ALL = timedelta(0)
# Counted from when an image began to be brought, so one that takes longer keeps nobody else.
A_MOMENT = 1.0
# What was begun stays: it can go on, and perhaps another process of ours is at work on it too.
PASSING = frozenset(kind.reason for kind in (Busy, DriverError, Unreachable))


class _Stopped(Exception):
    """Somebody wants the machine gone before it was complete."""


@dataclass(slots=True)
class _Site:
    plan: MachinePlan
    progress: Progress | None = None
    stop: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True, slots=True)
class _Failure:
    """Why an order failed, and for how long the same one would fail again."""

    plan: MachinePlan
    error: DriverError
    until: float
    told: bool = False

    @classmethod
    def of(cls, plan: MachinePlan, error: DriverError) -> "_Failure":
        match error:
            case Rejected(again=again):
                pause = again or MUCH_LATER
            case Busy(after=after):
                pause = after
            case _:
                pause = NOT_AT_ALL
        return cls(plan, error, asyncio.get_running_loop().time() + pause.total_seconds())


@dataclass(slots=True)
class Building:
    """Brings images and furnishes machines, each in a task; ``carry`` is for what takes long.

    One that fails is taken away again, and why is told by the next order to make it. Machines of
    the same image wait for one that is brought once.
    """

    stock: Stock
    locate: Locate
    work: Work
    carry: Work
    done: Callable[[str], None]
    _sites: dict[str, _Site] = field(default_factory=dict)
    _completed: set[str] = field(default_factory=set)
    _failures: dict[str, _Failure] = field(default_factory=dict)
    _deliveries: Deliveries = field(init=False)
    _tasks: set["asyncio.Task[None]"] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._deliveries = Deliveries(self.stock, self.carry)

    @property
    def uids(self) -> frozenset[str]:
        """The machines that are being made."""
        return frozenset(self._sites)

    @property
    def progress(self) -> dict[str, str]:
        """How far the images are that machines wait for."""
        sites = self._sites.items()
        return {uid: site.progress.sentence for uid, site in sites if site.progress}

    def has(self, uid: str) -> bool:
        """Say whether a machine is being made."""
        return uid in self._sites

    async def at_hand(self, plan: MachinePlan) -> InStock | None:
        """Return the image of a machine if it can be made at once; what is wrong is told later.

        One that others have just begun to bring may be there in a moment, so that is waited for.
        """
        try:
            located = await self.locate(plan)
            require_minimum(located, plan.resources)
            if (delivery := self._deliveries.find(located, plan)) is not None:
                left = delivery.begun + A_MOMENT - asyncio.get_running_loop().time()
                await asyncio.wait({delivery.task}, timeout=max(0, left))
            return self.stock.at_hand(located, plan.pull)
        except (DriverError, OSError):
            return None

    def start(self, plan: MachinePlan) -> None:
        """Begin to make a machine that was written down."""
        site = self._sites[plan.ref.uid] = _Site(plan)
        task = asyncio.create_task(self._build(site))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def just_completed(self, uid: str) -> bool:
        """Say, once, whether a machine was made here and has all it needs."""
        fresh = uid in self._completed
        self._completed.discard(uid)
        return fresh

    def stop(self, uid: str) -> bool:
        """Have a machine not made any further; say whether that is still under way."""
        site = self._sites.get(uid)
        if site is not None:
            site.stop.set()
        return site is not None

    def raise_failure(self, plan: MachinePlan) -> None:
        """Raise what went wrong with this very order, until it is worth another attempt."""
        failed = self._failures.pop(plan.ref.uid, None)
        if failed is None or failed.plan != plan:
            return
        left = failed.until - asyncio.get_running_loop().time()
        if not failed.told or left > 0:
            self._failures[plan.ref.uid] = replace(failed, told=True)
            raise failed.error

    def forget(self, uid: str) -> None:
        """Forget what came of it."""
        self._failures.pop(uid, None)
        self._completed.discard(uid)

    def close(self) -> None:
        """Leave everything as it is: what was begun is found by its definition."""
        for task in self._tasks:
            task.cancel()

    async def _build(self, site: _Site) -> None:
        uid = site.plan.ref.uid
        try:
            if not await self.work(lambda builder: _furnished(builder, site.plan)):
                image = await self._image(site)
                await self.work(lambda builder: _completed(builder, site.plan, image))
            self._completed.add(uid)
        except DriverError as error:
            self._failures[uid] = _Failure.of(site.plan, error)
            if error.reason not in PASSING:
                await self._clear(uid)
        except _Stopped:
            pass
        except Exception as error:  # noqa: BLE001 - or it would begin anew at once, for ever
            told = unforeseen(f"making {site.plan.ref.name}", error)
            self._failures[uid] = _Failure.of(site.plan, told)
        finally:
            self._sites.pop(uid, None)
            self.done(uid)

    async def _image(self, site: _Site) -> InStock:
        located = await self.locate(site.plan)
        require_minimum(located, site.plan.resources)
        with self._deliveries.wanted(located, site.plan) as delivery:
            site.progress = delivery.progress
            stop = asyncio.create_task(site.stop.wait())
            either: set[asyncio.Future[Any]] = {delivery.task, stop}
            try:
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            finally:
                stop.cancel()
            if site.stop.is_set():
                raise _Stopped
            return await asyncio.shield(delivery.task)

    async def _clear(self, uid: str) -> None:
        def remove(builder: Builder) -> None:
            domain = find(builder.connection, uid)
            begun = domain is not None and domain.configured.mark.begun
            # A first disk means that somebody else completed it, or that it has a guest's data.
            if not begun and not builder.has_root(uid):
                builder.remove(uid, domain)

        try:
            await self.work(remove)
        except DriverError as error:
            log.warning("what was begun stays until the next attempt: %s", error)


def made_at_once(
    builder: Builder, stock: Stock, plan: MachinePlan, seed: Seed, image: InStock, domain: Domain
) -> Domain | None:
    """Give a machine all it needs; what fails is to be tried again, and told, by ``Building``."""
    try:
        builder.furnish(plan, seed)
        domain = builder.complete(plan, image, domain)
        stock.used(builder.pool, image)
    except (DriverError, libvirt.libvirtError) as error:
        log.debug("%s is made in more than one go: %s", plan.ref.name, error)
        return None
    return domain


def started_at_once(builder: Builder, domain: Domain) -> Domain:
    """Start a machine that was just made; one that does not start tells why when it is told to."""
    try:
        return builder.start(domain)
    except (DriverError, libvirt.libvirtError) as error:
        log.debug("%s did not start at once: %s", domain.uid, error)
        return domain


def _furnished(builder: Builder, plan: MachinePlan) -> bool:
    """Give a machine all but its first disk; say whether it has that."""
    builder.furnish(plan, seed_of(plan))
    if not builder.has_root(plan.ref.uid):
        return False
    if (domain := find(builder.connection, plan.ref.uid)) is not None:
        take_out(builder.pool, domain)
    return True


def _completed(builder: Builder, plan: MachinePlan, image: InStock) -> None:
    if (domain := find(builder.connection, plan.ref.uid)) is None:
        raise Busy(f"somebody removed {plan.ref.name} while it was made")
    builder.require_disk(domain)  # while its image was brought it may have come to have had one
    builder.complete(plan, image, domain)
