"""A pod's status follows from its containers: phases and conditions as Kubernetes defines them."""

import pytest

from novacron.localcluster.node.status import (
    PodFacts,
    Running,
    Terminated,
    View,
    Waiting,
    pod_status,
)

NOW, EARLIER = "2026-11-15T10:00:00Z", "2026-11-15T09:00:00Z"
FACTS = PodFacts("10.0.0.1", "novacron-local://novacron/novacron@1", "10.0.0.2")
CREATING = Waiting("ContainerCreating")
RUNS = Running(EARLIER)
GOOD = Terminated(0, "Completed", EARLIER, NOW)
BAD = Terminated(1, "Error", EARLIER, NOW)
CRASHING = Waiting("CrashLoopBackOff", "back-off 10s")


def view(state, **more):
    return View("c", "novacron/novacron", state, **more)


def status(policy, main, init=(), before=None, facts=FACTS, gates=()):
    """Return the status of a pod with these containers."""
    spec = {"restartPolicy": policy, "readinessGates": [{"conditionType": g} for g in gates]}
    pod = {"metadata": {"uid": "u"}, "spec": spec, "status": before or {}}
    return pod_status(pod, list(init), list(main), facts, NOW)


def condition(found, kind):
    return next(each for each in found["conditions"] if each["type"] == kind)


@pytest.mark.parametrize(
    ("policy", "init", "main", "phase"),
    [
        ("Always", [], [view(CREATING)], "Pending"),
        ("Always", [], [view(RUNS)], "Running"),
        ("Always", [], [view(RUNS), view(CREATING)], "Pending"),
        ("Always", [], [view(CRASHING, last=BAD)], "Running"),
        ("Always", [view(RUNS)], [view(CREATING)], "Pending"),
        ("Always", [view(CRASHING, last=BAD)], [view(CREATING)], "Pending"),
        ("Always", [view(GOOD)], [view(RUNS)], "Running"),
        ("Never", [view(BAD)], [view(CREATING)], "Failed"),
        ("Never", [], [view(GOOD)], "Succeeded"),
        ("Never", [], [view(GOOD), view(BAD)], "Failed"),
        ("Never", [], [view(RUNS), view(BAD)], "Running"),
        ("OnFailure", [], [view(GOOD)], "Succeeded"),
        ("OnFailure", [], [view(CRASHING, last=BAD)], "Running"),
    ],
)
def test_the_phase_follows_from_the_containers(policy, init, main, phase):
    """Jobs and Deployments decide by it."""
    assert status(policy, main, init)["phase"] == phase


def test_a_pod_that_the_node_gave_up_has_failed():
    """Whatever its containers' last exit codes were."""
    facts = PodFacts("10.0.0.1", "i", "10.0.0.2", failure=("NodeShutdown", "stopped"))
    found = status("Never", [view(GOOD)], facts=facts)
    assert (found["phase"], found["reason"]) == ("Failed", "NodeShutdown")


def test_ready_means_that_every_container_is():
    """And the message names those that are not."""
    half = status("Always", [view(RUNS, ready=True), view(RUNS)])
    assert condition(half, "Ready")["status"] == "False"
    assert "[c]" in condition(half, "ContainersReady")["message"]
    whole = status("Always", [view(RUNS, ready=True)])
    assert condition(whole, "Ready")["status"] == "True"
    assert "reason" not in condition(whole, "Ready")


def test_a_pod_that_is_done_is_not_ready():
    """Nobody may send it requests."""
    assert condition(status("Never", [view(GOOD)]), "Ready")["reason"] == "PodCompleted"


def test_gates_of_others_keep_a_pod_from_being_ready():
    """Only Ready waits for them: the containers are ready."""
    found = status("Always", [view(RUNS, ready=True)], gates=["example.com/open"])
    assert condition(found, "ContainersReady")["status"] == "True"
    assert condition(found, "Ready")["reason"] == "ReadinessGatesNotReady"


def test_conditions_of_others_and_moments_of_change_stay():
    """A status is written often; what did not change must not look new."""
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": EARLIER}
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": EARLIER}
    before = {"conditions": [scheduled, ready], "startTime": EARLIER}
    found = status("Always", [view(RUNS, ready=True)], before=before)
    assert condition(found, "PodScheduled") == scheduled
    assert condition(found, "Ready")["lastTransitionTime"] == EARLIER
    assert condition(found, "Initialized")["lastTransitionTime"] == NOW
    assert found["startTime"] == EARLIER


def test_a_container_tells_its_runs_apart():
    """The run before and the run now have different identities."""
    [container] = status("Always", [view(RUNS, last=BAD, restarts=3)])["containerStatuses"]
    assert container["containerID"].endswith("/c/3")
    assert container["lastState"]["terminated"]["containerID"].endswith("/c/2")
    assert container["lastState"]["terminated"]["exitCode"] == 1
    assert container["state"] == {"running": {"startedAt": EARLIER}}
    [waiting] = status("Always", [view(CREATING)])["containerStatuses"]
    assert waiting["state"] == {"waiting": {"reason": "ContainerCreating"}}
    assert "containerID" not in waiting
