"""Hooks of a machine: done once for each start, waited for without standing still.

A program takes as long as it takes inside the guest and is looked after from time to time. What
was done is on record with the guest itself, so it is neither done twice nor left out by whoever
comes after us.
"""

from datetime import timedelta

from novacron.controllers.requests import NO_ADDRESS
from novacron.controllers.round import HOOK_FAILED, HOOK_RUNNING, Scope
from novacron.core.errors import Busy, Rejected, Unsupported
from novacron.core.guest_commands import AGENT_SILENT, GuestCommands
from novacron.core.hooks import PRE_START, PRE_STOP, TIMED_OUT, GuestProgram, Hook, Ran
from novacron.core.machine import Power
from novacron.core.steps import Blocked, Done, Outcome, Wait

__all__ = ["before_stop", "may_stop_again", "prepare"]

LOOK_AGAIN = timedelta(seconds=1)
# So much later than the guest itself should have ended it.
GUEST_SLACK = timedelta(seconds=30)
# A guest that still boots is not asked, so its hook's time has not begun.
NOT_UP_YET = frozenset({AGENT_SILENT, NO_ADDRESS})


async def prepare(scope: Scope) -> Outcome:
    """Do what is to be done when the machine has started; it is not ready before."""
    hook = scope.machine.hooks.pre_start
    if hook is None or scope.machine.power is Power.OFF:
        return Done("Prepared")
    ran = scope.ran(PRE_START)
    if ran is None or (ran.code and ran.digest != hook.digest):
        try:
            ran = await _done(scope, PRE_START, hook)
        except Busy as error:
            if error.reason not in NOT_UP_YET:
                raise
            return Wait(HOOK_RUNNING, LOOK_AGAIN, f"{PRE_START} waits: {error}")
    if ran is None:
        return await _awaited(scope, hook)
    if ran.code:
        return Blocked(HOOK_FAILED, _failure(ran, hook))
    return Done("Prepared", f"{PRE_START} has ended")


async def _awaited(scope: Scope, hook: Hook) -> Outcome:
    """Wait for what runs; give up on a guest that lost it, which nobody would ever hear of."""
    limit = hook.timeout + GUEST_SLACK
    message = f"{PRE_START} runs, for {hook.timeout.total_seconds():.0f} s at most"
    claim = scope.machine.condition("Prepared")
    since = claim.probed if claim is not None and claim.message == message else None
    if since is None or scope.now - since < limit:
        return Wait(HOOK_RUNNING, LOOK_AGAIN, message)
    ran = Ran(PRE_START, hook.digest, TIMED_OUT)
    await _commands(scope).note_ran(scope.machine.ref, ran)
    return Blocked(HOOK_FAILED, _failure(ran, hook))


async def before_stop(scope: Scope, condition: str, stopping: str) -> Wait | None:
    """Do what is to be done before the machine stops; None when nothing is in the way any more.

    ``condition`` is that of the step which stops it, ``stopping`` its reason once the guest was
    asked. Whatever comes of the hook, the machine is stopped then.
    """
    hook, seen = scope.machine.hooks.pre_stop, scope.seen
    if hook is None or seen is None or seen.power is Power.OFF:
        return None
    if scope.since(condition, stopping) is not None:
        return None
    ran = scope.ran(PRE_STOP)
    if ran is not None and scope.since(condition, HOOK_RUNNING) is None:
        return None  # what came of it was told
    limit = hook.timeout.total_seconds()
    try:
        ran = ran or await _within(scope, condition, hook)
    except (Rejected, Unsupported) as error:
        scope.tell(HOOK_FAILED, f"{PRE_STOP} was left out: {error}")
        return None
    if ran is None:
        return Wait(HOOK_RUNNING, LOOK_AGAIN, f"{PRE_STOP} runs, for {limit:.0f} s at most")
    if ran.code:
        scope.tell(HOOK_FAILED, f"{_failure(ran, hook)}; it is stopped all the same")
    return None


async def _within(scope: Scope, condition: str, hook: Hook) -> Ran | None:
    """Return how the hook ended, at the latest when its time is over."""
    ran: Ran | None = None
    try:
        ran = await _done(scope, PRE_STOP, hook)
    except Busy as error:
        if error.reason not in NOT_UP_YET:
            raise
    began = scope.since(condition, HOOK_RUNNING)
    if ran is None and began is not None and scope.now - began >= hook.timeout:
        ran = Ran(PRE_STOP, hook.digest, TIMED_OUT)
        await _commands(scope).note_ran(scope.machine.ref, ran)
    return ran


async def _done(scope: Scope, name: str, hook: Hook) -> Ran | None:
    """Have a hook done, or see what became of it; None while it is under way."""
    commands, ref = _commands(scope), scope.machine.ref
    scope.may_act()
    if isinstance(hook, GuestProgram):
        return await commands.run_once(ref, name, hook)
    addresses = scope.seen.addresses if scope.seen else ()
    ran = scope.requests.sent(scope.machine.uid, name, hook, addresses)
    if ran is not None:
        await commands.note_ran(ref, ran)
    return ran


def _commands(scope: Scope) -> GuestCommands:
    driver: object = scope.driver
    if not isinstance(driver, GuestCommands):
        raise Unsupported("the host's driver cannot run hooks (GuestCommands)")
    return driver


def _failure(ran: Ran, hook: Hook) -> str:
    how = f"ended with {ran.code}"
    if ran.code == TIMED_OUT:
        how = f"did not end within {hook.timeout.total_seconds():.0f} s"
    return f"{ran.name} {how}" + (f"; {ran.note}" if ran.note else "")


async def may_stop_again(scope: Scope) -> None:
    """Forget a preStop that was begun for a stop which nobody wants any more."""
    scope.requests.forget(scope.machine.uid, {PRE_STOP})
    under_way = scope.seen is not None and PRE_STOP in scope.seen.under_way
    if under_way or scope.ran(PRE_STOP) is not None:
        scope.may_act()
        await _commands(scope).forget_ran(scope.machine.ref, PRE_STOP)
