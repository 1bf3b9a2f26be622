"""What is left of a machine on hosts that did not answer when it went from them."""

from dataclasses import replace
from datetime import timedelta

from novacron.controllers.round import Round
from novacron.core.driver import Drivers
from novacron.core.errors import Busy, DriverError
from novacron.core.machine import Machine
from novacron.core.migration import LiveMigration
from novacron.core.steps import Outcome, Wait

__all__ = ["removed_from", "tidied"]

AGAIN = timedelta(seconds=5)


async def tidied(machine: Machine, done: Round, drivers: Drivers) -> Round:
    """Return the round with leftovers removed from hosts that answer again."""
    home: object = drivers.named(machine.ref.host)
    assert isinstance(home, LiveMigration)
    kept = await home.pack(machine.ref)
    left = set(machine.leftovers)
    for host in machine.leftovers:
        driver: object = drivers.named(host)
        if isinstance(driver, LiveMigration) and not drivers.trouble(host):
            try:
                await driver.clear_out(machine.ref_on(host), kept)
            except DriverError:
                continue
            left.discard(host)
        elif driver is None:
            left.discard(host)  # nobody declares it any more, so nobody can ask it
    outcomes = dict(done.outcomes)
    name, last = next(reversed(outcomes.items()))
    if left and (last.after is None or last.after > AGAIN):
        outcomes[name] = replace(last, after=AGAIN)
    return replace(done, outcomes=outcomes, leftovers=frozenset(left))


async def removed_from(machine: Machine, host: str, drivers: Drivers) -> Outcome | None:
    """Remove a machine that is to go from a host that is not its own; return what that waits for.

    Disks that its own host reaches too go with the machine itself, which may still be kept.
    """
    driver: object = drivers.named(host)
    home: object = drivers.named(machine.ref.host)
    if not isinstance(driver, LiveMigration) or not isinstance(home, LiveMigration):
        return None
    waits = f"what may be left of it on host {host} has to go first"
    if trouble := drivers.trouble(host) or drivers.trouble(machine.ref.host):
        return Wait("HostUnreachable", AGAIN, f"{waits}: {trouble}")
    try:
        await driver.clear_out(machine.ref_on(host), await home.pack(machine.ref))
    except Busy as error:
        return Wait("Removing", error.after, f"{waits}: {error}")
    except DriverError as error:
        return Wait(error.reason, AGAIN, f"{waits}: {error}")
    return None
