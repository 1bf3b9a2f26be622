"""The example with hooks on a simulated host: what its owner sees, from start to stop."""

from pathlib import Path
from typing import Any

import yaml

from e2e.conftest import Stage
from machines import condition

EXAMPLE = Path(__file__).parents[2] / "examples" / "21-hooks.yaml"
Object = dict[str, Any]


def careful(stage: Stage, host: str, **more: Any) -> Object:
    """Return the example's machine whose hooks are programs, for a host of the test."""
    return of_the_example("careful", stage, host, **more)


def of_the_example(name: str, stage: Stage, host: str, **more: Any) -> Object:
    """Return a machine of the example for a host of the test."""
    written = yaml.safe_load_all(EXAMPLE.read_text())
    body: Object = next(each for each in written if each["metadata"]["name"] == name)
    body["metadata"]["namespace"] = stage.namespace
    body["spec"]["template"]["spec"] |= {"nodeSelector": {"test/host": host}, **more}
    return body


def because(reason: str) -> Any:
    """Return the claim that a machine is not ready for this reason."""
    return lambda obj: (
        condition(obj, "Ready").get("status") == "False"
        and condition(obj, "Ready")["reason"] == reason
    )


def test_a_machine_with_hooks_is_ready_after_one_and_stopped_after_the_other(stage: Stage) -> None:
    """Two waits that are seen, in the order they are declared."""
    stage.api.create(careful(stage, stage.add_host()))
    obj = stage.until("careful", because("HookRunning"))
    assert obj["status"]["phase"] == "Running"
    assert "preStart runs, for 60 s at most" in condition(obj, "Ready")["message"]
    obj = stage.until_running("careful")
    stage.api.patch_machine(stage.namespace, "careful", {"spec": {"running": False}})
    obj = stage.until("careful", because("HookRunning"))
    assert obj["status"]["phase"] == "Running"
    stage.until("careful", lambda obj: obj["status"]["phase"] == "Stopped")


def test_a_hook_that_fails_is_told_and_the_machine_still_stops(stage: Stage) -> None:
    """A failed preStart keeps it from being ready, a failed preStop keeps it from nothing."""
    failing = {"exec": {"command": ["false"]}}
    hooks = {"preStart": failing, "preStop": failing}
    stage.api.create(careful(stage, stage.add_host(), lifecycle=hooks))
    obj = stage.until("careful", because("HookFailed"))
    assert condition(obj, "Ready")["message"] == "preStart ended with 1"
    stage.api.patch_machine(stage.namespace, "careful", {"spec": {"running": False}})
    stage.until("careful", lambda obj: obj["status"]["phase"] == "Stopped")
    told = stage.until_event("careful", "HookFailed")
    assert told["message"] == "preStop ended with 1; it is stopped all the same"
