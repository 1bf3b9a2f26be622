"""Brings one placed machine to its declared state.

A step owns one condition and may run any number of times; nothing here knows Kubernetes.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from novacron.core.driver import Accepted, Driver, Drivers
from novacron.core.errors import DriverError, OutOfCapacity, Unreachable
from novacron.core.machine import Machine, Observed, Power
from novacron.core.steps import Blocked, Done, Outcome, Step, Wait, run_steps

__all__ = ["DELETION", "LIFECYCLE", "MachineReconciler", "Round", "Scope"]

SOON = timedelta(milliseconds=500)
LATER = timedelta(seconds=10)
MUCH_LATER = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Happening:
    """Something worth telling the user once."""

    reason: str
    message: str


@dataclass(slots=True)
class Scope:
    """One machine in one round: what is wanted, what is there, and what was done about it.

    ``may_act`` is asked right before each order to a host and raises when this process has lost
    the right to give any.
    """

    machine: Machine
    driver: Driver
    seen: Observed | None
    may_act: Callable[[], object]
    refused: bool = False
    ordered: timedelta | None = None
    happened: list[Happening] = field(default_factory=list)

    async def follow(self, accepted: Accepted) -> None:
        """See what became of an order, and note when it is due if it takes time."""
        self.ordered = accepted.look_again
        self.seen = await self.driver.observe(self.machine.ref)

    @property
    def next_look(self) -> timedelta:
        """When what is under way should be over, as far as anyone can tell."""
        return (self.seen.due if self.seen else None) or self.ordered or SOON

    def tell(self, reason: str, message: str) -> None:
        """Note what was done, for the user."""
        self.happened.append(Happening(reason, message))


@dataclass(frozen=True, slots=True)
class Round:
    """How a round ended."""

    outcomes: dict[str, Outcome]
    seen: Observed | None = None
    refused: bool = False
    happened: tuple[Happening, ...] = ()

    @property
    def look_again(self) -> timedelta | None:
        """When the next round is due without any change."""
        last = next(reversed(self.outcomes.values()))
        return last.after if isinstance(last, Wait) else None

    @property
    def settled(self) -> bool:
        """Say whether every step is done."""
        return all(isinstance(outcome, Done) for outcome in self.outcomes.values())


async def create(scope: Scope) -> Outcome:
    """Make the machine on its host."""
    host = scope.machine.host
    if scope.seen is None:
        scope.may_act()
        try:
            accepted = await scope.driver.create(scope.machine.plan())
        except OutOfCapacity as full:
            # Nothing was made there, so the placer may look for another host.
            scope.refused = True
            return Wait("HostFull", None, str(full))
        scope.tell("Created", f"created on host {host}")
        await scope.follow(accepted)
    if scope.seen is None or scope.seen.changing == "create":
        return Wait("Creating", scope.next_look, f"being created on host {host}")
    return Done("Created", f"exists on host {host}")


async def configure(scope: Scope) -> Outcome:
    """Give the machine the resources that are reserved for it."""
    plan = scope.machine.plan()
    if scope.seen and not scope.seen.changing and scope.seen.resources != plan.resources:
        scope.may_act()
        accepted = await scope.driver.resize(plan)
        scope.tell("Resized", f"resized to {_amount(scope.machine)}")
        await scope.follow(accepted)
    if scope.seen and scope.seen.resources != plan.resources:
        return Wait("Resizing", scope.next_look, f"being resized to {_amount(scope.machine)}")
    return Done("Configured", f"has {_amount(scope.machine)}")


async def set_power(scope: Scope) -> Outcome:
    """Start or stop the machine."""
    want, host = scope.machine.power, scope.machine.host
    doing, done = ("Starting", "Started") if want is Power.ON else ("Stopping", "Stopped")
    if scope.seen and not scope.seen.changing and scope.seen.power is not want:
        scope.may_act()
        accepted = await scope.driver.set_power(scope.machine.ref, want)
        scope.tell(done, f"{done.lower()} on host {host}")
        await scope.follow(accepted)
    if scope.seen and (scope.seen.power is not want or scope.seen.changing):
        return Wait(doing, scope.next_look, f"{doing.lower()} on host {host}")
    return Done(done, f"{done.lower()} on host {host}")


async def remove(scope: Scope) -> Outcome:
    """Remove the machine and all it has from its host."""
    if scope.seen is not None and scope.seen.changing != "delete":
        scope.may_act()
        await scope.follow(await scope.driver.delete(scope.machine.ref))
    if scope.seen is not None:
        return Wait("Removing", scope.next_look, f"being removed from host {scope.machine.host}")
    return Done("Removed", "nothing of it is left")


def _amount(machine: Machine) -> str:
    resources = machine.plan().resources
    return (
        f"{resources.vcpus} CPUs, {resources.memory_mib} MiB memory, {resources.disk_mib} MiB disk"
    )


LIFECYCLE = (
    Step("Created", create),
    Step("Configured", configure),
    Step("Powered", set_power),
)
DELETION = (Step("Removed", remove),)


def always() -> None:
    """Allow every order, for a process that is alone."""


@dataclass(frozen=True, slots=True)
class MachineReconciler:
    """Runs the steps of one machine against the driver that reaches its host."""

    drivers: Drivers
    may_act: Callable[[], object] = always

    async def reconcile(self, machine: Machine) -> Round:
        """Take one machine as far as it goes now."""
        steps = DELETION if machine.deleting else LIFECYCLE
        first = steps[0].condition
        driver = self.drivers.named(machine.ref.host)
        if driver is None:
            return Round({first: _no_host(machine)})
        if trouble := self.drivers.trouble(machine.ref.host):
            # Whoever noticed asks again and wakes the machines of a host that is back.
            return Round({first: Wait("HostUnreachable", MUCH_LATER, trouble)})
        try:
            seen = await driver.observe(machine.ref)
        except Unreachable as error:
            return Round({first: Wait("HostUnreachable", LATER, str(error))})
        except DriverError as error:
            return Round({first: Wait("HostTrouble", LATER, str(error))})
        scope = Scope(machine, driver, seen, self.may_act)
        outcomes = await run_steps(steps, scope)
        return Round(outcomes, scope.seen, scope.refused, tuple(scope.happened))


def _no_host(machine: Machine) -> Blocked:
    return Blocked(
        "HostUnknown",
        f"host {machine.host} is not declared any more; declare it again to reach the machine",
    )
