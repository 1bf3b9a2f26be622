"""Kills the process right before or right after one of its writes.

A point is what is written and the how-manieth time, so that it is found again in another run of
the same scenario. Every write passes ``Knife.around``, and is noted in a journal.
"""

import os
import signal
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from novacron.core.driver import Accepted, Capability, Driver, Inventory
from novacron.core.guest_commands import GuestCommands
from novacron.core.hooks import GuestProgram, Ran
from novacron.core.host import HostFacts
from novacron.core.machine import MachinePlan, MachineRef, Observed, Power
from novacron.core.migration import Destination, LiveMigration, Luggage
from novacron.core.move import MovePolicy, MoveProgress
from novacron.core.snapshot import RestoreOrder, Snapshot, SnapshotOrder, Snapshots
from novacron.core.volume import KeptVolume, Volume, VolumeKeeping
from novacron.runtime.client import Client, Request

__all__ = ["CutClient", "CutDriver", "Knife", "Point"]


@dataclass(frozen=True, slots=True)
class Point:
    """One write of a scenario, and which side of it."""

    write: str
    number: int
    side: str

    def __str__(self) -> str:
        return f"{self.side}|{self.number}|{self.write}"

    @classmethod
    def parse(cls, text: str) -> "Point | None":
        """Read a point as it prints; an empty text is none."""
        if not text:
            return None
        side, number, write = text.split("|", 2)
        return cls(write, int(number), side)


@dataclass(slots=True)
class Knife:
    """Falls at one point; without one, only the journal is kept."""

    journal: Path
    point: Point | None
    _seen: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @asynccontextmanager
    async def around(self, write: str) -> AsyncIterator[None]:
        """Surround one write; one that was refused has an end too."""
        self._seen[write] += 1
        number = self._seen[write]
        with self.journal.open("a") as journal:
            journal.write(f"{number}|{write}\n")
        self._fall(Point(write, number, "before"))
        try:
            yield
        finally:
            self._fall(Point(write, number, "after"))

    def beneath(
        self,
        owner: type | ModuleType,
        name: str,
        *,
        unless: Callable[..., bool] = lambda *_, **__: False,
    ) -> None:
        """Have every call of a blocking method pass here too, in whichever thread it is made.

        ``unless`` says of what a call is given that nothing is changed by it.
        """
        method = getattr(owner, name)
        write = f"{owner.__name__}.{name}"

        def cut(*arguments: Any, **more: Any) -> Any:
            if unless(*arguments, **more):
                return method(*arguments, **more)
            with self._lock:
                self._seen[write] += 1
                number = self._seen[write]
                with self.journal.open("a") as journal:
                    journal.write(f"{number}|{write}\n")
            self._fall(Point(write, number, "before"))
            answer = method(*arguments, **more)
            self._fall(Point(write, number, "after"))
            return answer

        setattr(owner, name, cut)

    def _fall(self, here: Point) -> None:
        if here == self.point:
            os.kill(os.getpid(), signal.SIGKILL)


class CutClient(Client):
    """A client whose writes pass under the knife."""

    knife: Knife

    async def send(self, request: Request) -> bytes:
        """Send a request; its collection and subresource name the write."""
        if not request.writes:
            return await super().send(request)
        async with self.knife.around(f"{request.verb} {_shape(request.path)}"):
            return await super().send(request)


def _shape(path: str) -> str:
    """Return a path without the names in it, except a host's: hosts/a/status, virtualmachines."""
    parts = path.split("/")
    if "hosts" in parts:
        return "/".join(parts[parts.index("hosts") :])
    if "namespaces" in parts:
        resource, _, *subresource = [*parts[parts.index("namespaces") + 2 :], ""]
        return "/".join([resource, *filter(None, subresource)])
    return path


@dataclass(frozen=True, slots=True)
class CutDriver:
    """A driver whose writes pass under the knife."""

    driver: Driver
    knife: Knife

    @property
    def capabilities(self) -> frozenset[Capability]:
        """As the driver within."""
        return self.driver.capabilities

    async def observe(self, ref: MachineRef) -> Observed | None:
        """Read."""
        return await self.driver.observe(ref)

    async def create(self, plan: MachinePlan) -> Accepted:
        """Write."""
        async with self.knife.around("driver create"):
            return await self.driver.create(plan)

    async def resize(self, plan: MachinePlan) -> Accepted:
        """Write."""
        async with self.knife.around("driver resize"):
            return await self.driver.resize(plan)

    async def set_power(self, ref: MachineRef, want: Power, *, force: bool = False) -> Accepted:
        """Write."""
        async with self.knife.around(f"driver power {want}"):
            return await self.driver.set_power(ref, want, force=force)

    async def delete(self, ref: MachineRef) -> Accepted:
        """Write."""
        async with self.knife.around("driver delete"):
            return await self.driver.delete(ref)

    async def pack(self, ref: MachineRef) -> Luggage:
        """Read."""
        return await self._mover.pack(ref)

    async def send(self, ref: MachineRef, to: Destination, policy: MovePolicy) -> None:
        """Write."""
        async with self.knife.around("driver send"):
            await self._mover.send(ref, to, policy)

    async def movement(self, ref: MachineRef) -> MoveProgress | None:
        """Read."""
        return await self._mover.movement(ref)

    async def cancel_move(self, ref: MachineRef) -> None:
        """Write."""
        async with self.knife.around("driver cancel"):
            await self._mover.cancel_move(ref)

    async def clear_out(self, ref: MachineRef, kept: Luggage, *, was_home: bool) -> None:
        """Write."""
        async with self.knife.around("driver clear"):
            await self._mover.clear_out(ref, kept, was_home=was_home)

    async def welcome(self, plan: MachinePlan, luggage: Luggage) -> Destination:
        """Write."""
        async with self.knife.around("driver welcome"):
            return await self._mover.welcome(plan, luggage)

    async def arrived(self, plan: MachinePlan, luggage: Luggage | None) -> MoveProgress:
        """Write."""
        async with self.knife.around("driver arrived"):
            return await self._mover.arrived(plan, luggage)

    async def out_of_reach(self, plan: MachinePlan) -> str | None:
        """Read."""
        return await self._mover.out_of_reach(plan)

    @property
    def _mover(self) -> LiveMigration:
        mover: object = self.driver
        assert isinstance(mover, LiveMigration)
        return mover

    async def run_once(self, ref: MachineRef, name: str, program: GuestProgram) -> Ran | None:
        """Write."""
        assert isinstance(self.driver, GuestCommands)
        async with self.knife.around(f"driver run {name}"):
            return await self.driver.run_once(ref, name, program)

    async def note_ran(self, ref: MachineRef, ran: Ran) -> None:
        """Write."""
        assert isinstance(self.driver, GuestCommands)
        async with self.knife.around(f"driver note {ran.name}"):
            await self.driver.note_ran(ref, ran)

    async def forget_ran(self, ref: MachineRef, name: str) -> None:
        """Write."""
        assert isinstance(self.driver, GuestCommands)
        async with self.knife.around(f"driver forget {name}"):
            await self.driver.forget_ran(ref, name)

    async def kept_volumes(self, host: str) -> Sequence[KeptVolume]:
        """Read."""
        assert isinstance(self.driver, VolumeKeeping)
        return await self.driver.kept_volumes(host)

    async def reclaim(self, ref: MachineRef, volumes: Iterable[Volume]) -> None:
        """Write."""
        assert isinstance(self.driver, VolumeKeeping)
        async with self.knife.around("driver reclaim"):
            await self.driver.reclaim(ref, volumes)

    async def delete_volume(self, host: str, namespace: str, volume: str) -> None:
        """Write."""
        assert isinstance(self.driver, VolumeKeeping)
        await self.driver.delete_volume(host, namespace, volume)

    async def machines(self, host: str) -> Sequence[Observed]:
        """Read."""
        assert isinstance(self.driver, Inventory)
        return await self.driver.machines(host)

    async def snapshots(self, ref: MachineRef) -> Sequence[Snapshot]:
        """Read."""
        return await self._keeper.snapshots(ref)

    async def take_snapshot(self, ref: MachineRef, order: SnapshotOrder) -> Accepted:
        """Write."""
        async with self.knife.around("driver snapshot"):
            return await self._keeper.take_snapshot(ref, order)

    async def restore_snapshot(self, ref: MachineRef, order: RestoreOrder) -> Accepted:
        """Write."""
        async with self.knife.around("driver restore"):
            return await self._keeper.restore_snapshot(ref, order)

    async def remove_snapshot(self, ref: MachineRef, name: str) -> Accepted:
        """Write."""
        async with self.knife.around("driver discard"):
            return await self._keeper.remove_snapshot(ref, name)

    @property
    def _keeper(self) -> Snapshots:
        assert isinstance(self.driver, Snapshots)
        return self.driver

    def hosts(self) -> AsyncIterator[HostFacts]:
        """Read."""
        return self.driver.hosts()

    async def close(self) -> None:
        """As the driver within."""
        await self.driver.close()
