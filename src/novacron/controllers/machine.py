"""The steps that bring one placed machine to its declared state.

A step owns one condition and may run any number of times; nothing here knows Kubernetes.
"""

from datetime import timedelta

from novacron.controllers.hooks import before_stop, may_stop_again, prepare
from novacron.controllers.protection import protect
from novacron.controllers.restoring import restore
from novacron.controllers.round import BACK_OFF, PENDING, Happening, Scope
from novacron.controllers.volumes import (
    leaving_volumes,
    reclaim,
    require_unused,
    volumes_in_words,
)
from novacron.core.errors import OutOfCapacity
from novacron.core.machine import Hindrance, Machine, MachinePlan, Observed, Power
from novacron.core.steps import Done, Outcome, Step, Wait
from novacron.core.volume import are_as_planned

__all__ = ["DELETION", "HELD", "REMOVED", "lifecycle"]

LATER = timedelta(seconds=10)
MUCH_LATER = timedelta(seconds=60)
# So long before a restart that nobody asked for a condition says that it will come.
NOTICE = timedelta(seconds=5)
AT_ONCE = timedelta(0)
A_MOMENT = timedelta(seconds=1)


async def create(scope: Scope) -> Outcome:
    """Make the machine on its host."""
    host = scope.machine.host
    if scope.seen is None or scope.seen.abandoned:
        plan = scope.machine.plan()
        require_unused(scope, plan.volumes or ())
        scope.may_act()
        if (why := await _promised_too_much(scope)) is not None:
            scope.refused = True
            return Wait("HostFull", None, why)
        scope.requests.forget(scope.machine.uid)
        try:
            accepted = await scope.driver.create(plan)
        except OutOfCapacity as full:
            # Nothing was made there, so the placer may look for another host.
            scope.refused = True
            return Wait("HostFull", None, str(full))
        new = scope.seen is None
        await scope.follow(accepted)
        runs = scope.seen is not None and scope.seen.power is Power.ON
        if new and not (scope.seen and scope.seen.hindered):
            scope.tell("Created", f"created {'and started ' if runs else ''}on host {host}")
        if runs:
            scope.restarts.started(scope.machine.uid, scope.now)
    if scope.seen is None or scope.seen.changing == "create":
        if scope.seen and scope.seen.hindered:
            return _hindered(scope, "Created", scope.seen.hindered)
        how_far = f": {scope.seen.progress}" if scope.seen and scope.seen.progress else ""
        brief = scope.ordered is not None and scope.ordered <= A_MOMENT
        message = f"being created on host {host}{how_far}"
        return Wait("Creating", scope.next_look, message, brief=brief)
    return Done("Created", f"exists on host {host}")


async def _promised_too_much(scope: Scope) -> str | None:
    """Say of what its host was promised more than it has, where nothing is made there yet."""
    if scope.seen is not None or not scope.machine.promised:
        return None
    if (why := scope.overdrawn()) is None:
        return None
    # Whoever made it may have died before that was written down, so that nobody looked.
    scope.seen = await scope.driver.observe(scope.machine.ref)
    return why if scope.seen is None else None


def _hindered(scope: Scope, condition: str, why: Hindrance, after: timedelta = MUCH_LATER) -> Wait:
    """Wait for somebody to mend what is in the way; the hypervisor tells when that is done."""
    if scope.since(condition, why.reason) is None:
        scope.happened.append(Happening(why.reason, why.message, warning=True))
    return Wait(why.reason, after, why.message)


async def configure(scope: Scope) -> Outcome:
    """Give the machine the resources that are reserved for it, and all else that was asked for."""
    plan, before = scope.machine.plan(scope.seen), scope.seen
    # What cannot start as it is may be able to when it asks for something else.
    idle = before is not None and (not before.changing or before.hindered is not None)
    if before and idle and _is_to_change(scope, before, plan):
        require_unused(scope, plan.volumes or ())
        scope.may_act()
        accepted = await scope.driver.resize(plan)
        if not _as_planned(before, plan):
            scope.tell(*_what_was_done(before, plan))
        await scope.follow(accepted)
    elif before and not before.changing and (leaving := leaving_volumes(before)):
        # A guest that was busy when it was asked to let go does so when it is asked again.
        scope.may_act()
        await scope.follow(await scope.driver.resize(plan))
        return Done("Configured", f"the guest is to let go of {leaving}", after=LATER)
    if scope.seen and not _as_planned(scope.seen, plan):
        return Wait("Resizing", scope.next_look, f"being resized to {_amount(plan)}")
    if scope.seen and scope.seen.awaits_restart and scope.machine.power is Power.ON:
        return await _restart(scope, plan)
    return Done("Configured", f"has {_amount(plan)}")


async def _restart(scope: Scope, plan: MachinePlan) -> Outcome:
    """Have what needs a restart take effect, if that is allowed and was announced."""
    assert scope.seen is not None
    announced = scope.since("RestartRequired", PENDING)
    notice = AT_ONCE if scope.machine.restart_at_once else NOTICE
    if not scope.machine.restart_allowed or announced is None:
        return Done("Configured", "some of it takes effect with a restart", after=notice)
    if (left := announced + notice - scope.now) > AT_ONCE:
        return Done("Configured", "some of it takes effect with a restart", after=left)
    if waiting := await before_stop(scope, "Configured", "Restarting"):
        return waiting
    what = ", ".join(scope.seen.awaits_restart)
    if scope.since("Configured", "Restarting") is None:
        scope.tell("Restarting", f"restarted because {what} changed")
    if await _stopped(scope, "Configured", "Restarting"):
        return Done("Configured", f"has {_amount(plan)}")
    return Wait("Restarting", scope.next_look, f"being restarted for {what}")


async def set_power(scope: Scope) -> Outcome:
    """Start or stop the machine."""
    if scope.machine.power is Power.ON:
        return await _start(scope)
    host, uid = scope.machine.host, scope.machine.uid
    scope.restarts.forget(uid)
    asked = scope.since("Powered", "Stopping") is not None
    if waiting := await before_stop(scope, "Powered", "Stopping"):
        return waiting
    running = scope.seen is not None and scope.seen.power is Power.ON
    if running and not await _stopped(scope, "Powered", "Stopping"):
        if not asked:
            scope.tell("Stopping", f"asked to shut down on host {host}")
        return Wait("Stopping", scope.next_look, f"stopping on host {host}")
    if running or asked:
        scope.tell("Stopped", f"stopped on host {host}")
    return Done("Stopped", f"stopped on host {host}")


async def _start(scope: Scope) -> Outcome:
    machine, seen, host = scope.machine, scope.seen, scope.machine.host
    if seen and not seen.changing and seen.power is Power.OFF:
        if scope.died and (pause := scope.restarts.pause(machine.uid, scope.now)):
            if scope.since("Powered", BACK_OFF) is None:
                scope.tell("Died", f"{seen.ended}; it is started again")
            return Wait(BACK_OFF, pause, f"{seen.ended}; it is started again soon")
        scope.may_act()
        scope.requests.forget(machine.uid)  # what another start of the guest was asked
        accepted = await scope.driver.set_power(machine.ref, Power.ON)
        scope.restarts.started(machine.uid, scope.now)
        scope.tell("Started", f"started on host {host}")
        await scope.follow(accepted)
    if scope.seen and (scope.seen.power is Power.OFF or scope.seen.changing):
        if scope.seen.hindered:
            return _hindered(scope, "Powered", scope.seen.hindered)
        return Wait("Starting", scope.next_look, f"starting on host {host}")
    if (stands_still := await _gone_on(scope)) is not None:
        return stands_still
    # Also where others started it, or the answer to our asking was lost.
    scope.restarts.started(machine.uid, scope.now)
    await may_stop_again(scope)
    return Done("Started", f"started on host {host}")


async def _gone_on(scope: Scope) -> Wait | None:
    """Have a guest go on that stands still; say why one does that cannot go on yet."""
    uid, now = scope.machine.uid, scope.now
    if scope.seen is None or (why := scope.seen.hindered) is None:
        return None
    # One that stands still again as soon as it went on is asked to ever less often.
    pause = scope.restarts.pause(uid, now)
    if not pause:
        scope.may_act()
        await scope.follow(await scope.driver.set_power(scope.machine.ref, Power.ON))
        why = scope.seen.hindered if scope.seen else None
    if why is not None:
        return _hindered(scope, "Powered", why, pause or LATER)
    scope.restarts.started(uid, now)
    scope.tell("Resumed", f"goes on, on host {scope.machine.host}")
    return None


async def _stopped(scope: Scope, condition: str, reason: str) -> bool:
    """Have the guest stop, which is asked first and forced after a while; say whether it has."""
    assert scope.seen is not None
    asked = scope.since(condition, reason)
    force = asked is not None and scope.now - asked >= scope.grace
    if force or not scope.seen.changing:
        scope.may_act()
        if force:
            scope.tell("Forced", f"did not shut down within {scope.grace.total_seconds():.0f} s")
        await scope.follow(await scope.driver.set_power(scope.machine.ref, Power.OFF, force=force))
    return scope.seen is None or scope.seen.power is Power.OFF


async def remove(scope: Scope) -> Outcome:
    """Remove the machine and all it has from its host.

    Also one that is not seen: whoever took it away may have left its disks.
    """
    if (held := await protect(scope)) is not None:
        return held
    scope.restarts.forget(scope.machine.uid)
    if waiting := await before_stop(scope, "Removed", "Removing"):
        return waiting
    scope.requests.forget(scope.machine.uid)
    if scope.seen is None or scope.seen.changing != "delete":
        scope.may_act()
        await scope.follow(await scope.driver.delete(scope.machine.ref))
    if scope.seen is not None or scope.ordered:
        return Wait("Removing", scope.next_look, f"being removed from host {scope.machine.host}")
    return Done("Removed", "nothing of it is left")


async def hold(scope: Scope) -> Outcome:
    """Wait for what must not go with the machine, before anything of it goes anywhere."""
    return await protect(scope) or Done("Free", "nothing holds it up")


def _is_to_change(scope: Scope, seen: Observed, plan: MachinePlan) -> bool:
    """Say whether the driver has something to do.

    Also before a restart is announced: whoever set the machine up may have died before it came to
    what a running guest takes at once.
    """
    pending = bool(seen.awaits_restart) and scope.since("RestartRequired", PENDING) is None
    return not _as_planned(seen, plan) or (pending and scope.machine.power is Power.ON)


def _as_planned(seen: Observed, plan: MachinePlan) -> bool:
    same_recipe = seen.recipe is None or seen.recipe == plan.recipe
    same_volumes = plan.volumes is None or are_as_planned(seen.volumes, plan.volumes)
    same = same_recipe and same_volumes
    return seen.configured == plan.resources and same and seen.drifted is None


def _what_was_done(seen: Observed, plan: MachinePlan) -> tuple[str, str]:
    if seen.drifted is not None:
        return "Repaired", f"set up again because {seen.drifted}"
    if seen.configured != plan.resources:
        return "Resized", f"resized to {_amount(plan)}"
    if plan.volumes is not None and not are_as_planned(seen.volumes, plan.volumes):
        return "VolumesChanged", f"given {volumes_in_words(plan.volumes)}"
    return "Configured", "set up with the networks, hardware and user data that it is to have"


def _amount(plan: MachinePlan) -> str:
    resources = plan.resources
    return (
        f"{resources.vcpus} CPUs, {resources.memory_mib} MiB memory, {resources.disk_mib} MiB disk"
    )


MADE = (Step("Created", create), Step("Restored", restore))
CONFIGURED, POWERED = Step("Configured", configure), Step("Powered", set_power)
RUNNING = (*MADE, CONFIGURED, POWERED, Step("Prepared", prepare))
# Whoever wants it off waits for nothing else, least of all for what its host refuses.
STOPPED = (*MADE, POWERED, CONFIGURED)
REMOVED = "Removed"
HELD = (Step(REMOVED, hold),)
DELETION = (Step(REMOVED, remove), Step("Reclaimed", reclaim))


def lifecycle(machine: Machine) -> tuple[Step[Scope], ...]:
    """Return the steps that bring a machine to what its owner wants."""
    return RUNNING if machine.power is Power.ON else STOPPED
