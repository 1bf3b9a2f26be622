"""What a driver brings along to be tested: a host of its own, and a hand behind its back.

A driver joins the suite by one file in ``drivers/`` that names its set-ups in UNDER_TEST.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Protocol

import pytest

from novacron.core.driver import Accepted, Driver, Inventory
from novacron.core.errors import Busy
from novacron.core.machine import FirstDisk, MachinePlan, MachineRef, Nic, Observed, Resources
from novacron.core.volume import Attachment, Volume, VolumeKeeping

__all__ = ["STEP", "STEPS", "Bench", "Disturbance", "DriverUnderTest", "FullDriver"]

STEP = timedelta(seconds=1)
STEPS = 120
ORDINARY = FirstDisk()


class FullDriver(Driver, Inventory, VolumeKeeping, Protocol):
    """What every driver of ours is: drift repair lives on the inventory."""


class Disturbance(Protocol):
    """Somebody at the hypervisor's own console, who does not ask us."""

    async def power_off(self, uid: str) -> None:
        """Pull the plug."""

    async def destroy(self, uid: str) -> None:
        """Remove the machine."""

    async def plant(self, name: str) -> None:
        """Make a machine of this name that is not ours and carries no UID."""


@dataclass(frozen=True)
class Bench:
    """One host with nothing on it, reached through the driver under test.

    ``small`` fits several times, ``large`` grows it in every resource and fits once beside a
    small one, ``too_big`` fits on no host. ``room`` is what the host gives to machines when
    the driver enforces that to the last unit, else None. ``ids_are_uids`` says that machines have
    their owner's UID as their id at the hypervisor. Of the two storage classes one is shared.

    A host that is not ``limited`` takes what it has no room for, and it waits when it is started.
    One that ``restarts_guests`` does so whoever ended them, unless it was told to stop them. Where
    there is ``one_of_a_name`` in a namespace, a second machine waits for the first to go. Guests of
    a host that ``only_grows_running`` get less of anything, and other volumes, with a restart. One
    that ``takes_over_volumes`` gives a kept one to another machine, and knows which are shared.
    Where others do the work, the driver ``hears_later`` of it: what it did is seen after a while,
    and until then it is busy. Every other driver knows at once. One that ``keeps_memory`` has it
    in snapshots of guests that run; any other refuses to.
    """

    host: str
    connect: Callable[[], FullDriver]
    connect_broken: Callable[[], FullDriver]
    disturb: Disturbance
    pass_time: Callable[[timedelta], Awaitable[None]]
    small: Resources
    large: Resources
    too_big: Resources
    room: Resources | None
    image: str = "https://images.example/tiny.qcow2"
    ids_are_uids: bool = False
    unshared_class: str = "fast"
    shared_class: str = "common"
    namespace: str = "default"
    first_disk: FirstDisk = ORDINARY
    limited: bool = True
    restarts_guests: bool = False
    one_of_a_name: bool = False
    only_grows_running: bool = False
    takes_over_volumes: bool = True
    hears_later: bool = False
    keeps_memory: bool = True

    def plan(
        self,
        uid: str = "uid-1",
        *,
        name: str = "web",
        size: Resources | None = None,
        nics: tuple[Nic, ...] = (),
        volumes: tuple[Volume, ...] = (),
    ) -> MachinePlan:
        """Return a plan for the host; the small size when none is given."""
        ref = MachineRef(uid, self.namespace, name, self.host)
        return MachinePlan(
            ref,
            size or self.small,
            self.image,
            nics,
            volumes=volumes,
            first_disk=self.first_disk,
        )

    async def settled(self, driver: FullDriver, ref: MachineRef) -> Observed | None:
        """Return how the machine is when nothing is under way any more."""
        for _ in range(STEPS):
            seen = await driver.observe(ref)
            if seen is None or (seen.changing is None and self._is_whole(seen)):
                return seen
            await self.pass_time(STEP)
        raise AssertionError(f"{ref.name} was still changing after {STEPS * STEP}")

    async def addressed(self, driver: FullDriver, ref: MachineRef) -> Observed:
        """Return how a running machine is once it has an address."""
        for _ in range(STEPS):
            seen = await driver.observe(ref)
            assert seen is not None
            if seen.addresses:
                return seen
            await self.pass_time(STEP)
        raise AssertionError(f"{ref.name} had no address after {STEPS * STEP}")

    async def grown(self, driver: FullDriver, ref: MachineRef) -> Observed:
        """Return how a machine is once it has what it is set to have, or waits for a restart."""
        for _ in range(STEPS):
            seen = await self.settled(driver, ref)
            assert seen is not None
            if not self.hears_later or seen.after_restart is None or seen.awaits_restart:
                return seen
            await self.pass_time(STEP)
        raise AssertionError(f"{ref.name} did not grow within {STEPS * STEP}")

    async def after(
        self, order: Awaitable[Accepted], driver: FullDriver, ref: MachineRef
    ) -> Observed | None:
        """Give an order and return what came of it in the end."""
        await order
        return await self.settled(driver, ref)

    async def created(self, driver: FullDriver, plan: MachinePlan) -> Observed:
        """Make a machine and return it."""
        # What had its name before may not be gone yet.
        return await self.insist(partial(driver.create, plan), driver, plan.ref)

    async def insist(
        self, order: Callable[[], Awaitable[Accepted]], driver: FullDriver, ref: MachineRef
    ) -> Observed:
        """Give an order until the host is not busy; return what came of it in the end."""
        for _ in range(STEPS):
            with suppress(Busy) if self.hears_later else nullcontext():
                seen = await self.after(order(), driver, ref)
                assert seen is not None
                return seen
            await self.pass_time(STEP)
        raise AssertionError(f"{ref.name}: the host was still busy after {STEPS * STEP}")

    async def kept(self, driver: FullDriver, *ids: str) -> None:
        """See that exactly these volumes are without a machine."""
        for _ in range(STEPS if self.hears_later else 1):
            found = [(each.namespace, each.id) for each in await driver.kept_volumes(self.host)]
            if sorted(found) == sorted((self.namespace, each) for each in ids):
                return
            await self.pass_time(STEP)
        raise AssertionError(f"kept are {found}, not {ids}")

    def _is_whole(self, seen: Observed) -> bool:
        """Say whether all that others do about a machine is done."""
        joining = any(volume.attachment is Attachment.ATTACHING for volume in seen.volumes)
        return not self.hears_later or (
            not joining and all(part.status == "True" for part in seen.parts)
        )

    def resized(self, plan: MachinePlan, size: Resources) -> MachinePlan:
        """Return the plan with another size."""
        return replace(plan, resources=size)


@dataclass(frozen=True)
class DriverUnderTest:
    """A driver in one set-up; ``examples`` is how many random histories it has time for.

    ``needs`` is the fixture that brings up what it works on, which makes all its tests full ones.
    """

    name: str
    bench: Callable[[Path], AbstractAsyncContextManager[Bench]]
    examples: int
    slow: bool = False
    needs: str = ""

    @property
    def marks(self) -> list[pytest.MarkDecorator]:
        """How its tests are marked."""
        return [pytest.mark.full] if self.needs else []
