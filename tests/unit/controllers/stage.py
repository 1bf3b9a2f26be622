"""A machine and a simulated host whose time a test moves, without Kubernetes."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from novacron.controllers.reconciler import MachineReconciler
from novacron.controllers.round import Round
from novacron.controllers.summary import summarise
from novacron.core.conditions import Condition
from novacron.core.driver import Driver
from novacron.core.hooks import Hook, Hooks
from novacron.core.machine import Machine, Power, Resources
from novacron.drivers.simulation import SimulatedHost, SimulationDriver

__all__ = ["Diary", "World"]

SIZE = Resources(2, 1024, 10240)


@dataclass(slots=True)
class World:
    """One host, one machine on it, and a clock."""

    directory: Path
    host: SimulatedHost = field(
        default_factory=lambda: SimulatedHost("a", Resources(8, 8192, 99999))
    )
    now: datetime = datetime(2026, 11, 15, tzinfo=UTC)
    down: str | None = None
    machine: Machine = field(init=False)
    driver: SimulationDriver = field(init=False)
    reconciler: MachineReconciler = field(init=False)

    def __post_init__(self) -> None:
        self.driver = SimulationDriver(
            self.directory / "world.db", self.host, clock=lambda: self.now, random=lambda: 0.0
        )
        self.reconciler = MachineReconciler(self, now=lambda: self.now)
        self.machine = Machine(
            uid="uid-1",
            namespace="default",
            name="vm",
            wanted=SIZE,
            image="builtin://tiny",
            power=Power.ON,
            host="a",
            reserved=SIZE,
        )

    def named(self, host: str) -> Driver | None:
        """Satisfy Drivers: only one host is known."""
        return self.driver if host == self.host.name else None

    def is_declared(self, host: str) -> bool:
        return self.named(host) is not None

    def trouble(self, host: str) -> str | None:
        """Satisfy Drivers."""
        del host
        return self.down

    def is_fenced(self, host: str) -> bool:
        """Satisfy Drivers: nobody switches it off for good."""
        del host
        return False

    def is_written_off(self, host: str) -> bool:
        """Satisfy Drivers."""
        return self.is_fenced(host)

    def change(self, **fields: object) -> None:
        """Have the owner change the machine."""
        self.machine = replace(self.machine, **fields)  # type: ignore[arg-type]

    async def round(self) -> Round:
        """Reconcile once."""
        return await self.reconciler.reconcile(self.machine)

    async def settle(self) -> Round:
        """Reconcile until nothing waits, moving the clock to when each wait is due."""
        for _ in range(50):
            done = await self.round()
            if done.settled or done.look_again is None:
                return done
            self.now += max(done.look_again, timedelta(milliseconds=1))
        raise AssertionError(f"never settles: {done}")


@dataclass(slots=True)
class Diary(World):
    """A world in which what a round found out is written down, as the operator does."""

    async def round(self) -> Round:
        """Reconcile once and keep the conditions."""
        done = await self.reconciler.reconcile(self.machine)
        report = summarise(self.machine, done, self.now, write_usage=False)
        self.machine = replace(self.machine, conditions=report.conditions)
        return done

    async def pass_by(self, seconds: float) -> Round:
        """Let time pass, with a look each second."""
        for _ in range(int(seconds)):
            self.now += timedelta(seconds=1)
            done = await self.round()
        return done

    @property
    def ready(self) -> Condition:
        """What the owner reads first."""
        found = self.machine.condition("Ready")
        assert found is not None
        return found

    def hooks(self, pre_start: Hook | None = None, pre_stop: Hook | None = None) -> None:
        """Have the owner want hooks."""
        self.change(hooks=Hooks(pre_start, pre_stop))
