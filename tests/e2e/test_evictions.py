"""Taints of NoExecute: machines that do not tolerate them move away live, and none is stopped."""

from datetime import datetime, timedelta
from typing import Any

from e2e.conftest import Stage
from e2e.test_moves import hosts_of, pair, placed, result
from machines import condition
from novacron.core.machine import Power
from operators import eventually

Object = dict[str, Any]

TAINT = {"key": "maintenance", "value": "soon", "effect": "NoExecute"}
SAME = {"key": "maintenance", "operator": "Equal", "value": "soon"}
FOR_A_WHILE = {"effect": "NoExecute", "tolerationSeconds": 6}


def taint(stage: Stage, host: str, *taints: Object) -> None:
    stage.api.patch_host(host, {"spec": {"taints": list(taints)}})


def test_machines_that_do_not_tolerate_a_taint_move_away_a_few_at_a_time(stage: Stage) -> None:
    """Those that do stay, those that are off too, and those that do for a while leave after it."""
    here, there = pair(stage, delays={"move": "500ms"})
    for number in range(4):
        placed(stage, f"leaves-{number}", here)
    placed(stage, "tolerant", here, tolerations=[SAME])
    placed(stage, "patient", here, tolerations=[SAME | FOR_A_WHILE])
    placed(stage, "off", here)
    stage.api.patch_machine(stage.namespace, "off", {"spec": {"running": False}})
    stage.until("off", lambda obj: obj["status"]["phase"] == "Stopped")
    taint(stage, here, TAINT)
    most = 0

    def left() -> bool:
        nonlocal most
        with stage.world() as world:
            machines = [each for each in world.machines() if each.host == here]
        most = max(most, sum(each.changing == "move" for each in machines))
        return not any(each.name.startswith("leaves") for each in machines)

    eventually(left, lambda: f"they leave: {stage.operator.log}")
    assert 1 <= most <= 2
    moved = stage.until("leaves-0", lambda obj: result(obj) == "Succeeded")
    assert moved["status"]["nodeName"] == there
    patient = stage.until("patient", lambda obj: result(obj) == "Succeeded")
    (since,) = (stage.api.host(here) or {})["status"]["evictions"]
    began = datetime.fromisoformat(patient["status"]["migration"]["startTime"])
    assert began - datetime.fromisoformat(since["since"]) >= timedelta(seconds=6)
    assert hosts_of(stage, "tolerant") == [(here, Power.ON)]
    assert hosts_of(stage, "off") == [(here, Power.OFF)]


def test_a_machine_that_cannot_move_live_stays_and_says_so(stage: Stage) -> None:
    """It is not stopped; when it may move it does, and without the taint it says nothing."""
    here, there = pair(stage)
    fixed = placed(stage, "fixed", here)
    policy = {"spec": {"migrationPolicy": {"allowLiveMigration": False}}}
    stage.api.patch_machine(stage.namespace, "fixed", policy)
    stage.until("fixed", lambda obj: condition(obj, "LiveMigratable")["reason"] == "NotAllowed")
    taint(stage, here, TAINT)
    said = stage.until("fixed", lambda obj: bool(condition(obj, "EvictionBlocked")))
    blocked = condition(said, "EvictionBlocked")
    assert (blocked["status"], blocked["reason"]) == ("True", "NotAllowed")
    assert "maintenance=soon:NoExecute" in blocked["message"]
    assert "allowLiveMigration is false" in blocked["message"]
    assert condition(said, "Ready")["status"] == "True"
    assert hosts_of(stage, "fixed") == [(here, Power.ON)]
    taint(stage, here)
    stage.until("fixed", lambda obj: not condition(obj, "EvictionBlocked"))
    taint(stage, here, TAINT)
    stage.until("fixed", lambda obj: bool(condition(obj, "EvictionBlocked")))
    allowed = {"spec": {"migrationPolicy": {"allowLiveMigration": True}}}
    stage.api.patch_machine(stage.namespace, "fixed", allowed)
    moved = stage.until("fixed", lambda obj: obj["status"]["nodeName"] == there)
    assert moved["status"]["vmID"] == fixed["status"]["vmID"]
    stage.until("fixed", lambda obj: not condition(obj, "EvictionBlocked"))
    assert hosts_of(stage, "fixed") == [(there, Power.ON)]
