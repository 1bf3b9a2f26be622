"""A machine and a simulated host whose time a test moves, without Kubernetes."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from novacron.controllers.reconciler import MachineReconciler
from novacron.controllers.round import Round
from novacron.core.driver import Driver
from novacron.core.machine import Machine, Power, Resources
from novacron.drivers.simulation import SimulatedHost, SimulationDriver

__all__ = ["World"]

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

    def trouble(self, host: str) -> str | None:
        """Satisfy Drivers."""
        del host
        return self.down

    def is_fenced(self, host: str) -> bool:
        """Satisfy Drivers: nobody switches it off for good."""
        del host
        return False

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
