"""What Machines cost: a bounded number of writes each, and nothing at all while nothing changes."""

import time
from collections import Counter
from pathlib import Path

import pytest

from e2e.kubevirt.machines import MachineStage, staged
from e2e.kubevirt.many import Cost, cost_of, declare_many, until_all_run, until_looked_at
from kubevirt_bed import audit_of, fresh_namespace, new_bed, stop_bed
from operators import install

# Finalizer and record, VirtualMachine, two statuses, two events; and the claim of its one disk.
WRITES_EACH, CLAIMS_EACH = 6, 1
QUIET_SECONDS = 5


@pytest.mark.full
def test_machines_cost_few_writes_then_none(stage: MachineStage) -> None:
    check_cost(stage, 40, 180)


@pytest.mark.full
@pytest.mark.timeout(2400)
def test_hundreds_cost_no_more_each(tmp_path: Path) -> None:
    """In a cluster of their own: KubeVirt would keep everybody else waiting for minutes."""
    bed = new_bed(tmp_path / "cluster")
    try:
        install(bed.plane)
        with fresh_namespace(bed) as crowded, staged(crowded, tmp_path) as stage:
            check_cost(stage, 500, 1800)
    finally:
        stop_bed(bed)


def check_cost(stage: MachineStage, count: int, seconds: float) -> None:
    """Declare so many Machines, and see what they cost until they run, and from then on."""
    before = cost_of(stage)
    declare_many(stage, count)
    took = until_all_run(stage, count, seconds)
    # Events trickle: the last of them are still to come.
    settled = settle(stage)
    spent = cost_of(stage) - before
    print(f"{count} Machines ran {took:.1f} s after the last was declared: {spent}")
    print(writes_by_kind(stage))
    assert spent.writes / count <= WRITES_EACH + CLAIMS_EACH
    time.sleep(QUIET_SECONDS)
    between = cost_of(stage)
    time.sleep(QUIET_SECONDS)
    quiet = [between - settled, cost_of(stage) - between]
    assert [each.writes for each in quiet] == [0, 0]
    # Once a minute it looks at the Secret with its own certificates, which is in one at most.
    assert sorted(each.reads for each in quiet) in ([0, 0], [0, 1])
    stage.operator.stop()
    stage.operator.start()
    until_looked_at(stage, count)
    time.sleep(QUIET_SECONDS)
    again = cost_of(stage)
    print(f"started again: {again}")
    assert again.writes == 0


def writes_by_kind(stage: MachineStage) -> Counter[str]:
    """Return what was written how often, as the API server recorded it."""
    entries = audit_of(stage.bed.plane.directory).entries()
    return Counter(
        f"{each['verb']} {each['objectRef']['resource']} {each['objectRef'].get('subresource', '')}"
        for each in entries
        if each["verb"] not in ("get", "list", "watch")
        and each["objectRef"].get("namespace") == stage.bed.namespace
    )


def settle(stage: MachineStage) -> Cost:
    """Wait until nothing was asked of the API server for a while; return the cost by then."""
    known, since = cost_of(stage), time.monotonic()
    while time.monotonic() - since < QUIET_SECONDS / 2:
        time.sleep(0.2)
        now = cost_of(stage)
        if (now.writes, now.reads) != (known.writes, known.reads):
            known, since = now, time.monotonic()
    return known
