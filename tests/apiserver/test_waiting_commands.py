"""Commands that wait believe only what was said since they asked; nobody answers here."""

import os
import subprocess
import sys
from uuid import uuid4

import pytest

from api import Api
from declared import Object
from machines import host, virtual_machine
from operators import eventually

WAIT = ("--wait", "--timeout", "2")


def novacron(api: Api, *words: str) -> str:
    """Run a command that fails; return what it says."""
    done = subprocess.run(
        [sys.executable, "-m", "novacron.app.entry", *words],
        env={**os.environ, "KUBECONFIG": str(api.kubeconfig)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stderr


def say(api: Api, obj: Object, kind: str, *conditions: Object, **status: object) -> None:
    """Write a status as the operator would, of the spec as it is now."""
    metadata = obj["metadata"]
    within = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    path = f"/apis/novacron.io/v1alpha1{within}/{kind}/{metadata['name']}/status"
    when = {"lastTransitionTime": "2026-11-15T12:00:00Z"}
    told = {"conditions": [each | when for each in conditions], **status}
    told["observedGeneration"] = metadata["generation"]
    api.call("PATCH", path, {"status": told}, merge=True)


def test_a_drain_does_not_believe_what_was_said_of_the_one_before(api: Api) -> None:
    """The host may have machines again since it was taken up."""
    name = f"host-{uuid4().hex[:8]}"
    before = api.create(host(name, unschedulable=True, drain={}))
    drained = {"type": "Drained", "status": "True", "reason": "Drained", "message": "none is left"}
    say(api, before, "hosts", drained)
    api.patch_host(name, {"spec": {"unschedulable": False, "drain": None}})
    told = novacron(api, "host", "drain", name, *WAIT)
    assert told == f"{name}: not looked at yet\nerror: {name} is not drained after 2 s\n"
    api.delete_host(name)


@pytest.fixture
def machine(api: Api) -> Object:
    """A machine that has lost a snapshot, which its status says."""
    name = f"vm-{uuid4().hex[:8]}"
    body = virtual_machine(name, "default")
    body["spec"]["snapshots"] = [{"name": "lost"}]
    made = api.create(body)
    claim = {"type": "Snapshotted", "status": "False", "reason": "SnapshotLost", "message": "gone"}
    say(api, made, "virtualmachines", claim, snapshots=[{"name": "lost", "lost": True}])
    return made


def find(api: Api, name: str) -> Object:
    """Return a machine as it is now."""
    found = api.machine("default", name)
    assert found is not None
    return found


def requests(api: Api, name: str) -> list[str]:
    """Return which snapshots are asked for."""
    return [each["name"] for each in find(api, name)["spec"]["snapshots"]]


def test_a_snapshot_is_not_withdrawn_because_another_one_was_lost(
    api: Api, machine: Object
) -> None:
    """That one stays lost until somebody deletes it, and has nothing to do with this one."""
    name = machine["metadata"]["name"]
    command = [sys.executable, "-m", "novacron.app.entry", "vm", "snapshot", "create", name, "new"]
    environment = {**os.environ, "KUBECONFIG": str(api.kubeconfig)}
    with subprocess.Popen(
        [*command, "--wait", "--timeout", "4"], env=environment, stderr=subprocess.PIPE, text=True
    ) as waiting:
        eventually(lambda: requests(api, name) == ["lost", "new"], lambda: "it is asked for")
        claim = {"type": "Snapshotted", "status": "False", "reason": "SnapshotLost"}
        lost = [{"name": "lost", "lost": True}]
        say(api, find(api, name), "virtualmachines", claim | {"message": "gone"}, snapshots=lost)
        assert waiting.stderr is not None
        assert "was not as wanted after 4 s" in waiting.stderr.read()
    assert requests(api, name) == ["lost", "new"]
    api.delete_machine("default", name)


def test_a_lost_snapshot_is_not_taken_again_under_its_name(api: Api, machine: Object) -> None:
    """It would be another one; whoever asks is told at once."""
    name = machine["metadata"]["name"]
    told = novacron(api, "vm", "snapshot", "create", name, "lost", *WAIT)
    assert told == f'error: {name} has lost a snapshot "lost": delete it first\n'
    api.delete_machine("default", name)


STRANGE = {
    "type": "Snapshotted",
    "status": "False",
    "reason": "SnapshotExists",
    "message": "snapshot before-upgrade: somebody else took it at its host",
}


@pytest.fixture
def stuck(api: Api) -> Object:
    """A machine with a request that cannot be met, which its status says."""
    name = f"vm-{uuid4().hex[:8]}"
    body = virtual_machine(name, "default")
    body["spec"]["snapshots"] = [{"name": "before-upgrade"}]
    made = api.create(body)
    say(api, made, "virtualmachines", STRANGE)
    return made


def test_a_request_is_not_withdrawn_because_another_one_cannot_be_met(
    api: Api, stuck: Object
) -> None:
    """Whoever waits hears what is said of the snapshot that they asked for."""
    name = stuck["metadata"]["name"]
    command = [sys.executable, "-m", "novacron.app.entry", "vm", "snapshot", "create", name, "new"]
    environment = {**os.environ, "KUBECONFIG": str(api.kubeconfig)}
    with subprocess.Popen(
        [*command, "--wait", "--timeout", "30"], env=environment, stderr=subprocess.PIPE, text=True
    ) as waiting:
        both = ["before-upgrade", "new"]
        eventually(lambda: requests(api, name) == both, lambda: "it is asked for")
        say(api, find(api, name), "virtualmachines", STRANGE)
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(2)
        assert requests(api, name) == both
        message = f"{STRANGE['message']}; snapshot new: no room"
        say(api, find(api, name), "virtualmachines", STRANGE | {"message": message})
        assert waiting.stderr is not None
        assert "snapshot new: no room (SnapshotExists)" in waiting.stderr.read()
    assert requests(api, name) == ["before-upgrade"]
    api.delete_machine("default", name)


def test_a_request_that_cannot_be_met_is_withdrawn(api: Api, stuck: Object) -> None:
    """There is nothing yet that could be deleted; if it is being taken just now it goes then."""
    name = stuck["metadata"]["name"]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "novacron.app.entry", "vm", "snapshot"),
            *("delete", name, "before-upgrade", *WAIT),
        ],
        env={**os.environ, "KUBECONFIG": str(api.kubeconfig)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        f"snapshot before-upgrade of {name} was not taken yet, and is not asked for any more\n"
    )
    assert find(api, name)["spec"]["snapshots"] == [{"name": "before-upgrade", "discard": True}]
    again = novacron(api, "vm", "snapshot", "delete", name, "before-upgrade", *WAIT)
    assert again == f'error: {name} has no snapshot "before-upgrade"; it has none\n'
    api.delete_machine("default", name)
