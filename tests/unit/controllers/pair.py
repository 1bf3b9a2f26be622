"""Two simulated hosts, a machine that is on one of them, and a clock that a test moves."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from novacron.controllers.reconciler import MachineReconciler
from novacron.controllers.round import Round
from novacron.controllers.summary import summarise
from novacron.core.driver import Driver
from novacron.core.machine import Machine, Power, Resources
from novacron.core.move import Move
from novacron.drivers.simulation import Delays, Fault, SimulatedHost, SimulationDriver
from novacron.drivers.simulation import World as Outside

__all__ = ["ROOM", "SLOW", "Hosts"]

SIZE = Resources(2, 1024, 10240)
ROOM = Resources(8, 8192, 99999)
SLOW = timedelta(seconds=10)


@dataclass(slots=True)
class Hosts:
    """Two hosts, one machine, and what was last written about it."""

    directory: Path
    delays: Delays = field(default_factory=lambda: Delays(move=SLOW))
    faults: tuple[Fault, ...] = ()
    now: datetime = datetime(2026, 11, 15, tzinfo=UTC)
    silent: dict[str, str] = field(default_factory=dict)
    fenced: set[str] = field(default_factory=set)
    unusable: set[str] = field(default_factory=set)
    lease: Exception | None = None
    machine: Machine = field(init=False)
    drivers: dict[str, SimulationDriver] = field(init=False)

    def __post_init__(self) -> None:
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
        self.drivers = {"a": self.driver("a"), "b": self.driver("b", self.faults)}

    def driver(self, name: str, faults: tuple[Fault, ...] = ()) -> SimulationDriver:
        host = SimulatedHost(name, ROOM, delays=self.delays, faults=faults)
        return SimulationDriver(
            self.directory / "world.db", host, clock=lambda: self.now, random=lambda: 0.0
        )

    def named(self, host: str) -> Driver | None:
        return None if host in self.unusable else self.drivers.get(host)

    def is_declared(self, host: str) -> bool:
        return host in self.unusable or self.named(host) is not None

    def trouble(self, host: str) -> str | None:
        return self.silent.get(host)

    def is_fenced(self, host: str) -> bool:
        return host in self.fenced

    def is_written_off(self, host: str) -> bool:
        return self.is_fenced(host)

    def may_act(self) -> None:
        """Allow every order, unless the lease was lost."""
        if self.lease is not None:
            raise self.lease

    def lose(self, host: str) -> None:
        """Have a host lose its power, and somebody say so."""
        self.silent[host] = "no route"
        self.fenced.add(host)

    def answer(self, host: str) -> None:
        """Have a host be back, and somebody say so."""
        self.silent.pop(host, None)
        self.fenced.discard(host)

    def order(self, **fields: object) -> None:
        self.machine = replace(self.machine, move=Move("1", "a", "b", **fields))  # type: ignore[arg-type]

    async def set_off(self, **fields: object) -> Round:
        """Order a move; it is written down that it begins, and then it does."""
        self.order(**fields)
        await self.round()
        return await self.round()

    async def round(self) -> Round:
        """Reconcile once, and take for written what came of it."""
        reconciler = MachineReconciler(self, self.may_act, lambda: self.now)
        done = await reconciler.reconcile(self.machine)
        report = summarise(self.machine, done, self.now, write_usage=False)
        moved = report.move
        self.machine = replace(
            self.machine,
            host=report.host,
            conditions=report.conditions,
            last_move=moved or self.machine.last_move,
            leftovers=self.machine.leftovers if report.leftovers is None else report.leftovers,
            unreached=self.machine.unreached if report.unreached is None else report.unreached,
            move=None if moved and moved.result else self.machine.move,
        )
        return done

    async def settle(self) -> Round:
        for _ in range(60):
            done = await self.round()
            if self.machine.move is None and done.settled:
                return done
            self.now += max(done.look_again or timedelta(0), timedelta(milliseconds=1))
        raise AssertionError(f"never settles: {done}")

    def where(self) -> list[tuple[str, Power]]:
        with Outside(self.directory / "world.db", clock=lambda: self.now) as outside:
            return [(each.host, each.power) for each in outside.machines()]
