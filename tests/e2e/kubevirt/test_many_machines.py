"""What Machines cost: a bounded number of writes each, and nothing at all while nothing changes."""

import time

import pytest

from e2e.kubevirt.machines import MachineStage
from e2e.kubevirt.many import Cost, cost_of, declare_many, until_all_run

# Finalizer and record, VirtualMachine, two statuses, two events; and the claim of its one disk.
WRITES_EACH, CLAIMS_EACH = 6, 1
QUIET_SECONDS = 5


@pytest.mark.parametrize(
    ("count", "seconds"), [(40, 120), pytest.param(500, 1800, marks=pytest.mark.full)]
)
def test_machines_cost_few_writes_then_none(
    stage: MachineStage, count: int, seconds: float
) -> None:
    before = cost_of(stage)
    declare_many(stage, count)
    took = until_all_run(stage, count, seconds)
    # Events trickle: the last of them are still to come.
    settled = settle(stage)
    spent = cost_of(stage) - before
    print(f"{count} Machines ran {took:.1f} s after the last was declared: {spent}")
    assert spent.writes / count <= WRITES_EACH + CLAIMS_EACH
    time.sleep(QUIET_SECONDS)
    quiet = cost_of(stage) - settled
    assert (quiet.writes, quiet.reads) == (0, 0)
    stage.operator.stop()
    stage.operator.start()
    time.sleep(QUIET_SECONDS)
    again = cost_of(stage)
    print(f"started again: {again}")
    assert again.writes == 0


def settle(stage: MachineStage) -> Cost:
    """Wait until nothing was asked of the API server for a while; return the cost by then."""
    known, since = cost_of(stage), time.monotonic()
    while time.monotonic() - since < QUIET_SECONDS / 2:
        time.sleep(0.2)
        now = cost_of(stage)
        if (now.writes, now.reads) != (known.writes, known.reads):
            known, since = now, time.monotonic()
    return known
