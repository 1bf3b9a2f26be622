"""What is left of a machine on hosts that did not answer when it went from them."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

from novacron.controllers.round import Round
from novacron.controllers.voyage import AT_ONCE, MOVED, Silent, has_come, look
from novacron.core.driver import Drivers
from novacron.core.errors import Busy, DriverError
from novacron.core.machine import Machine
from novacron.core.migration import DISK_LOST, LiveMigration, Luggage
from novacron.core.steps import Done, Outcome, Wait

__all__ = ["come_after_all", "removed_from", "tidied"]

AGAIN = timedelta(seconds=5)
# A host that was switched off may stay so for weeks, and may have had many machines.
SELDOM = timedelta(seconds=30)


async def tidied(
    machine: Machine, done: Round, drivers: Drivers, may_act: Callable[[], object]
) -> Round:
    """Return the round with leftovers removed from hosts that answer again."""
    # One that nobody declares any more nobody can ask.
    left = {host for host in machine.leftovers if drivers.is_declared(host)}
    usable = [host for host in sorted(left) if drivers.named(host) is not None]
    answering = [host for host in usable if not drivers.trouble(host)]
    home: object = drivers.named(machine.ref.host)
    assert isinstance(home, LiveMigration)
    try:
        kept = await home.pack(machine.ref) if answering else Luggage()
    except DriverError:
        return _again(done, AGAIN)
    for host in answering:
        driver: object = drivers.named(host)
        if isinstance(driver, LiveMigration):
            was_home = host not in machine.unreached
            may_act()
            with suppress(DriverError):
                await driver.clear_out(machine.ref_on(host), kept, was_home=was_home)
                left.discard(host)
    after = AGAIN if left.intersection(answering) else SELDOM
    return replace(_again(done, after) if left else done, leftovers=frozenset(left))


def _again(done: Round, after: timedelta) -> Round:
    """Return the round with another one by then."""
    outcomes = dict(done.outcomes)
    name, last = next(reversed(outcomes.items()))
    if last.after is None or last.after > after:
        outcomes[name] = replace(last, after=after)
    return replace(done, outcomes=outcomes)


async def come_after_all(
    machine: Machine, drivers: Drivers, may_act: Callable[[], object]
) -> Round | None:
    """Return where a machine is that its own host does not have; None if it is nowhere else.

    A move whose hosts were both switched off is given up. It may have ended before, and then what
    its old host still has of its disks is not the newest.
    """
    if await look(drivers, machine.ref) is not None:
        return None  # it is there, or nobody can tell
    for host in sorted(machine.unreached):
        there = await look(drivers, machine.ref_on(host))
        given_up = not drivers.is_declared(host) or _is_given_up(machine, host, drivers)
        if isinstance(there, Silent) and not given_up:
            message = f"it may be on host {host}, which does not answer: {there.why}"
            return Round({MOVED: Wait("HostUnreachable", AGAIN, message)})
        if has_come(there):
            may_act()
            try:
                await _taken_in(machine, host, drivers)
            except Busy as error:
                if error.reason != DISK_LOST or not machine.deleting:
                    raise
            left = machine.leftovers - {host} | {machine.ref.host}
            outcome = Done("Settled", f"is on host {host}", after=AT_ONCE)
            return Round({MOVED: outcome}, there, host=host, leftovers=left)
    return None


async def _taken_in(machine: Machine, host: str, drivers: Drivers) -> None:
    """Have a host make the machine its own, as it is, without devices of the old one."""
    driver: object = drivers.named(host)
    if isinstance(driver, LiveMigration):
        plan = replace(machine.plan(), ref=machine.ref_on(host), devices=())
        await driver.arrived(plan, None)


async def removed_from(
    machine: Machine, host: str, drivers: Drivers, may_act: Callable[[], object]
) -> Outcome | None:
    """Remove a machine that is to go from a host that is not its own; return what that waits for.

    Disks that its own host reaches too go with the machine itself, which may still be kept.
    """
    driver = drivers.named(host)
    if not drivers.is_declared(host) or _is_given_up(machine, host, drivers):
        return None
    waits = f"what may be left of it on host {host} has to go first"
    if driver is None:
        return Wait("HostUnreachable", AGAIN, f"{waits}: it cannot be used as it is declared")
    away = drivers.trouble(machine.ref.host) or drivers.named(machine.ref.host) is None
    forgotten = machine.abandoned and away and drivers.is_written_off(machine.ref.host)
    if trouble := drivers.trouble(host) or (not forgotten and drivers.trouble(machine.ref.host)):
        return Wait("HostUnreachable", AGAIN, f"{waits}: {trouble}")
    try:
        if forgotten or not await _cleared(machine, host, drivers, may_act):
            may_act()
            await driver.delete(machine.ref_on(host))  # its own host's word is not waited for
    except Busy as error:
        return Wait("Removing", error.after, f"{waits}: {error}")
    except DriverError as error:
        return Wait(error.reason, AGAIN, f"{waits}: {error}")
    return None


def _is_given_up(machine: Machine, host: str, drivers: Drivers) -> bool:
    """Say whether nobody waits any more for what a silent host may have of a machine."""
    may_go = machine.deleting and machine.abandoned and drivers.is_written_off(host)
    return may_go and drivers.trouble(host) is not None


async def _cleared(
    machine: Machine, host: str, drivers: Drivers, may_act: Callable[[], object]
) -> bool:
    """Remove it without what its own host has too; say no where that host has lost its disk."""
    driver: object = drivers.named(host)
    home: object = drivers.named(machine.ref.host)
    if isinstance(driver, LiveMigration) and isinstance(home, LiveMigration):
        was_home = host in machine.leftovers - machine.unreached  # not where it was on its way to
        try:
            kept = await home.pack(machine.ref)
        except DriverError as error:
            if error.reason == DISK_LOST:
                return False
            raise
        may_act()
        await driver.clear_out(machine.ref_on(host), kept, was_home=was_home)
    return True
