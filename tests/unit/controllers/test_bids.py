"""When a machine of a host that is off may begin anew, and who may move while it runs."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from machines import host
from novacron.app.registry import HOST_KIND
from novacron.controllers.bids import Bid, Refused, bid_of, live_or_not
from novacron.controllers.ledger import Ledger
from novacron.core.conditions import Condition
from novacron.core.devices import HostDevice
from novacron.core.machine import Machine, Power, Resources
from novacron.core.move import MovePolicy, MoveReport, MoveRequest, MoveResult
from novacron.runtime.cache import Cache
from novacron.runtime.resource import Resource

HOSTS = Resource("novacron.io", "v1alpha1", "hosts", "Host", namespaced=False)
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
GRACE = timedelta(minutes=1)
FENCED = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
ASKED = Bid("asked for", urgent=True)
AGREED = replace(ASKED, stop_allowed=True)
RUNS = Condition("Ready", "True", "Running")
MACHINE = Machine(
    uid="uid-1",
    namespace="n",
    name="m",
    wanted=Resources(1, 512, 1024),
    image="builtin://tiny",
    power=Power.ON,
    host="a",
    conditions=(RUNS,),
)
TRAINER = replace(MACHINE, devices=(HostDevice("0000:3b:00.0", "gpu", "nvidia", "tesla-t4"),))


def silent_host(
    *,
    fenced: bool = True,
    answers: bool = False,
    fenced_by_node: bool = False,
    trouble: str = "HostUnreachable",
) -> Ledger:
    """Return a ledger of one host, which fell silent at noon or, if it answers, came back then."""
    body = host("a", taints=[FENCED] if fenced else [])
    body["metadata"] |= {"uid": "a", "generation": 1, "resourceVersion": "1"}
    status, reason = ("True", "HostReady") if answers else ("False", trouble)
    ready = {"type": "Ready", "status": status, "reason": reason}
    body["status"] = {"conditions": [{**ready, "lastTransitionTime": "2026-11-15T12:00:00Z"}]}
    if fenced_by_node:
        body["status"]["node"] = {"taints": [FENCED]}
    ledger, cache = Ledger(HOST_KIND), Cache(HOSTS)
    ledger.follow_hosts(cache)
    cache.seen(body)
    return ledger


@pytest.mark.parametrize(
    "passed", [timedelta(0), timedelta(seconds=25), GRACE - timedelta.resolution]
)
def test_machines_of_a_fenced_host_wait_until_it_was_silent_for_long_enough(
    passed: timedelta,
) -> None:
    """The answer is how long that still is, so that nobody asks more often than that."""
    assert bid_of(MACHINE, silent_host(), NOON + passed, GRACE) == GRACE - passed


@pytest.mark.parametrize("late", [timedelta(0), timedelta(days=3)])
def test_machines_of_a_fenced_host_are_lost_once_it_was_silent_for_long_enough(
    late: timedelta,
) -> None:
    """From that moment on, and nobody has to agree that they are stopped."""
    bid = bid_of(MACHINE, silent_host(), NOON + GRACE + late, GRACE)
    assert bid == Bid("host a is off", lost=True)
    assert isinstance(bid, Bid)
    assert live_or_not(MACHINE, bid, None) is False


def test_a_host_that_is_fenced_by_its_node_has_the_same_time() -> None:
    """Whoever switched it off may only know the Node."""
    ledger = silent_host(fenced=False, fenced_by_node=True)
    assert bid_of(MACHINE, ledger, NOON, GRACE) == GRACE
    assert bid_of(MACHINE, ledger, NOON + GRACE, GRACE) == Bid("host a is off", lost=True)


@pytest.mark.parametrize("passed", [timedelta(0), GRACE, timedelta(days=300)])
def test_a_silent_host_that_nobody_fenced_loses_no_machine(passed: timedelta) -> None:
    """However long it is silent: its guests may well run."""
    assert bid_of(MACHINE, silent_host(fenced=False), NOON + passed, GRACE) is None


def test_a_fenced_host_that_answers_loses_no_machine() -> None:
    """It is not off, whatever somebody said."""
    assert bid_of(MACHINE, silent_host(answers=True), NOON + 2 * GRACE, GRACE) is None


@pytest.mark.parametrize("trouble", ["PoolUnusable", "DriverNotSupported"])
def test_a_fenced_host_that_says_what_is_wrong_with_it_loses_no_machine(trouble: str) -> None:
    """It answers, so it is not off: its guests would be started a second time."""
    ledger = silent_host(trouble=trouble)
    assert bid_of(MACHINE, ledger, NOON + 2 * GRACE, GRACE) is None


def test_what_is_asked_of_a_machine_on_a_fenced_host_waits_too() -> None:
    """It can be sent nowhere from a host that is off; if that one answers it moves as asked."""
    asked = replace(MACHINE, move_request=MoveRequest("b"))
    assert bid_of(asked, silent_host(), NOON, GRACE) == GRACE
    there = bid_of(asked, silent_host(answers=True), NOON, GRACE)
    assert there == Bid("asked for", "b", urgent=True)


def test_a_machine_with_devices_stays_unless_it_may_be_stopped() -> None:
    """Its devices stay where they are, so that it cannot take them along while it runs."""
    refused = live_or_not(TRAINER, ASKED, None)
    assert isinstance(refused, Refused)
    assert refused.reason == "HasDevices"
    assert "--stop-allowed" in refused.message
    assert live_or_not(TRAINER, AGREED, None) is False


@pytest.mark.parametrize("bid", [ASKED, AGREED])
def test_a_machine_that_is_off_needs_nobodys_consent(bid: Bid) -> None:
    """With devices or without."""
    for machine in (MACHINE, TRAINER):
        assert live_or_not(replace(machine, power=Power.OFF), bid, None) is False


@pytest.mark.parametrize("bid", [ASKED, AGREED])
def test_a_machine_that_had_nowhere_to_go_is_asked_about_again(bid: Bid) -> None:
    """A host may have come just now; whoever chooses one says of each why not."""
    alone = said("NoOtherHost", "there is no other host with driver simulation")
    assert live_or_not(alone, bid, None) is True


@pytest.mark.parametrize("written", [RUNS, Condition("LiveMigratable", "True", "Movable")])
def test_a_machine_that_may_not_move_live_stays_unless_it_may_be_stopped(
    written: Condition,
) -> None:
    """Also where that was said in the same breath, and its conditions do not know of it yet."""
    message = "spec.migrationPolicy.allowLiveMigration is false"
    fixed = replace(MACHINE, conditions=(RUNS, written), live_migration_allowed=False)
    assert live_or_not(fixed, ASKED, None) == Refused("NotAllowed", message)
    assert live_or_not(fixed, AGREED, None) is False


def test_a_guest_without_one_of_its_volumes_stays_unless_it_may_be_stopped() -> None:
    """It would leave the volume behind; stopped, it takes along all that it has."""
    lacking = said("VolumesAwaitRestart", "it has a volume that its guest gets with a restart")
    refused = live_or_not(lacking, ASKED, None)
    assert isinstance(refused, Refused)
    assert refused.reason == "VolumesAwaitRestart"
    assert live_or_not(lacking, AGREED, None) is False


@pytest.mark.parametrize("reason", ["NotAllowed", "NoCertificates"])
def test_a_machine_moves_live_whose_owner_has_just_allowed_it(reason: str) -> None:
    """What its conditions say is of before."""
    assert live_or_not(said(reason, "it may not"), ASKED, None) is True


@pytest.mark.parametrize("reason", ["DriverCannotMigrate", "NoCertificates"])
def test_a_machine_stays_for_which_being_stopped_would_not_help(reason: str) -> None:
    """It is stopped for nothing, and whoever asked is told why, even if it is off."""
    stuck = replace(said(reason, "it cannot be"), move_policy=MovePolicy(encrypted=True))
    for machine in (stuck, replace(stuck, power=Power.OFF)):
        assert live_or_not(machine, AGREED, None) == Refused(reason, "it cannot be")


def said(reason: str, message: str) -> Machine:
    """Return a machine that runs and says why it cannot move live."""
    return replace(
        MACHINE, conditions=(RUNS, Condition("LiveMigratable", "False", reason, message))
    )


def ended(reason: str, result: MoveResult = MoveResult.FAILED) -> Machine:
    """Return a machine of host a whose last move, to host b, ended so and may have left things."""
    last = MoveReport("1", "a", "b", result=result, reason=reason)
    return replace(
        MACHINE, last_move=last, leftovers=frozenset({"b", "c"}), unreached=frozenset({"b"})
    )


@pytest.mark.parametrize("reason", ["HostLost", "HostBack"])
def test_a_machine_of_a_lost_host_may_begin_anew_where_it_was_on_its_way_to(reason: str) -> None:
    """What is left of it there cannot be taken for its disks, as what is left elsewhere can."""
    sought = Bid("host a is off", lost=True).sought(ended(reason), None, live=False)
    assert sought.refused_hosts == {"c"}


def test_where_a_machine_never_got_to_is_known_whatever_was_tried_since() -> None:
    """A refusal in between, or another host that was tried in vain, is no reason against it."""
    lost = Bid("host a is off", lost=True)
    refused = ended("NoHostFits", MoveResult.REFUSED)
    assert lost.sought(refused, None, live=False).refused_hosts == {"c"}
    tried = replace(refused, last_move=MoveReport("2", "a", "d", result=MoveResult.FAILED))
    assert lost.sought(tried, None, live=False).refused_hosts == {"c", "d"}


@pytest.mark.parametrize("bid", [ASKED, Bid("host a is drained")])
def test_a_machine_whose_host_is_back_waits_until_it_is_tidied_up_after(bid: Bid) -> None:
    """What is left is removed by its own host, and no other move begins there before that."""
    assert bid.sought(ended("HostLost"), None, live=True).refused_hosts == {"b", "c"}


def test_a_machine_of_a_lost_host_does_not_try_again_where_it_cannot_reach_its_disks() -> None:
    """At least not before it was looked for elsewhere."""
    sought = Bid("host a is off", lost=True).sought(ended("DisksOutOfReach"), None, live=False)
    assert sought.refused_hosts == {"b", "c"}


def not_ready(name: str, status: str, reason: str) -> Machine:
    """Return a machine with a step that is not done, and so not ready."""
    step = Condition(name, status, reason, "because")
    return replace(MACHINE, conditions=(step, replace(step, type="Ready")))


def test_a_guest_whose_hook_failed_moves_while_it_runs() -> None:
    """A host that is drained is left by all who run."""
    assert live_or_not(not_ready("Prepared", "False", "HookFailed"), ASKED, None) is True


@pytest.mark.parametrize(
    ("name", "reason"), [("Configured", "NetworkNotReached"), ("Powered", "BackOff")]
)
def test_a_machine_that_may_not_run_moves_only_if_it_may_be_stopped(name: str, reason: str) -> None:
    """Nobody can tell whether there is a guest to keep; with consent that does not matter."""
    stuck = not_ready(name, "False", reason)
    refused = live_or_not(stuck, ASKED, None)
    assert isinstance(refused, Refused)
    assert refused.reason == "NotRunning"
    assert "--stop-allowed" in refused.message
    assert live_or_not(stuck, AGREED, None) is False


@pytest.mark.parametrize("power", Power)
def test_a_machine_that_is_not_made_yet_stays(power: Power) -> None:
    """There is nothing to move, and what is wrong with it is said."""
    unmade = replace(not_ready("Created", "Unknown", "ImageNotFound"), power=power)
    for bid in (ASKED, AGREED):
        assert live_or_not(unmade, bid, None) == Refused(
            "NotCreated", "it is not made yet: because"
        )
