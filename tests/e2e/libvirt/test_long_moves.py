"""Moves that take long: how far they are is told, and a guest that changes much arrives too."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import libvirt
import libvirt_qemu
import pytest

from e2e.libvirt.moving import FleetStage, result
from inside_guest import BOOT_ID, agent_answers, inside
from machines import Object
from operators import eventually
from rights import ROOT

pytestmark = [
    pytest.mark.full,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not ROOT, reason="hosts of their own need root"),
]

# What a move has to send at least takes it so long that there is something to tell.
SLOWLY = {"bandwidth": "6Mi", "compression": False}
LONGEST_PAUSE_SECONDS = 6.0
LEAST_PAUSE_SECONDS = 0.5


@dataclass(frozen=True)
class Told:
    """What a status said of a move, and when it began to say so."""

    at: float
    percent: int
    sent_bytes: int


def told(stage: FleetStage, name: str) -> Iterator[Told]:
    """Return all that is said of a move until it is over, and in the end when that was."""
    before: tuple[int, int] | None = None
    while result(obj := stage.scene.until(name, lambda _: True)) is None:
        migration = obj["status"].get("migration") or {}
        said = migration.get("progress", 0), migration.get("transferredBytes", 0)
        if said[1] and said != before:
            yield Told(time.monotonic(), *said)
        before = said
        time.sleep(0.05)
    yield Told(time.monotonic(), 100, obj["status"]["migration"]["transferredBytes"])


def test_how_far_a_move_is_rises_and_is_told_every_second_or_two(shared: FleetStage) -> None:
    """Whoever waits for it sees that it goes on, and nobody is written to without end."""
    obj = shared.run("watched", policy=SLOWLY)
    shared.tick(obj, 0)
    # Who looks at everything each second anyway, as in other tests, would tell of it by that alone.
    seldom = (*shared.scene.operator.flags, "--reconcile-interval=60s")
    with shared.scene.operator.replaced(flags=seldom):
        shared.ask("watched", migrate_to=shared.hosts[1])
        said = list(told(shared, "watched"))
    done = shared.moved("watched")
    assert done["status"]["migration"]["result"] == "Succeeded", done["status"]["migration"]
    percents = [each.percent for each in said]
    assert percents == sorted(percents)
    assert len(set(percents) - {0, 100}) >= 3, said
    sent = [each.sent_bytes for each in said]
    assert sent == sorted(sent)
    pauses = [after.at - before.at for before, after in pairwise(said)]
    assert max(pauses) < LONGEST_PAUSE_SECONDS, said
    assert sum(pauses) / len(pauses) > LEAST_PAUSE_SECONDS, said


# Each time that is sent it has been written anew; the rest of the guest is sent only once.
REWRITTEN_MIB = 32
LIMIT_MIB = 16
SEED = f"for n in $(seq {REWRITTEN_MIB}); do cat /tmp/one; done >/tmp/seed"
REWRITE = (
    "n=0; while dd if=/tmp/seed of=/tmp/rewritten bs=1M conv=notrunc; "
    "do n=$((n + 1)); echo $n >/tmp/next && mv /tmp/next /tmp/times; done"
)
START = (
    f"dd if=/dev/urandom of=/tmp/one bs=1M count=1; {SEED}; "
    f"({REWRITE}) </dev/null >/dev/null 2>&1 &"
)
OBSERVED_SECONDS = 10
# Fifteen times over all that it has could be sent in that time.
ENOUGH_SECONDS = 240


def times(domain: libvirt.virDomain) -> int:
    """Return how often a guest has rewritten its file."""
    return int(inside(domain, "cat /tmp/times") or 0)


def throttled_percent(stage: FleetStage, obj: Object) -> int:
    """Return how much of its time QEMU takes from a guest that would never arrive otherwise."""
    try:
        with stage.domain(obj, 0) as domain:
            asked = json.dumps({"execute": "query-migrate"})
            said = json.loads(libvirt_qemu.qemuMonitorCommand(domain, asked, 0))
    except libvirt.libvirtError:
        return 0  # it has just left
    percent: int = said["return"].get("cpu-throttle-percentage", 0)
    return percent


def test_a_guest_that_rewrites_its_memory_faster_than_it_may_be_sent_arrives(
    shared: FleetStage,
) -> None:
    """It is slowed down until what is left can be sent at once, and is as fast as ever then."""
    obj = shared.run("restless", policy={"bandwidth": f"{LIMIT_MIB}Mi", "compression": False})
    with shared.domain(obj, 0) as domain:
        eventually(lambda: agent_answers(domain), lambda: "its agent answers")
        booted = inside(domain, BOOT_ID)
        inside(domain, START)
        eventually(lambda: times(domain) > 0, lambda: "it rewrites its file")
        first, begun = times(domain), time.monotonic()
        time.sleep(OBSERVED_SECONDS)
        rewritten = (times(domain) - first) * REWRITTEN_MIB / (time.monotonic() - begun)
    assert rewritten > 2 * LIMIT_MIB, "or it would arrive by itself"
    shared.ask("restless", migrate_to=shared.hosts[1])
    slowed = set[int]()

    def arrived(obj: Object) -> bool:
        slowed.add(throttled_percent(shared, obj))
        return result(obj) is not None

    done = shared.scene.until("restless", arrived, ENOUGH_SECONDS)
    assert done["status"]["migration"]["result"] == "Succeeded", done["status"]["migration"]
    assert max(slowed) > 0
    assert shared.guests(obj) == [1]
    with shared.domain(obj, 1) as domain:
        eventually(lambda: agent_answers(domain), lambda: "its agent answers")
        # An agent that was slowed down may have nothing to say at first.
        eventually(lambda: inside(domain, BOOT_ID) == booted, lambda: "it did not begin anew")
        eventually(lambda: times(domain) > first, lambda: "it goes on with what it did")
        there = times(domain)
        eventually(lambda: times(domain) > there, lambda: "it rewrites its file there too")
