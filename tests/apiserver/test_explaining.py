"""What ``explain vm`` says of a machine, with what somebody wrote in the place of a placer."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest

from api import Api
from machines import virtual_machine

Explain = Callable[..., list[str]]
UNSURE = "cannot make sure that it does not exist already: host a does not answer"
FULL = "stays as it is on host a: lacks CPU (4 asked, 3 free)"


@pytest.fixture
def explain(api: Api) -> Iterator[Explain]:
    """Write what was decided of a machine that no host takes; return what is explained then."""
    name = f"vm-{uuid4().hex[:8]}"
    api.create(virtual_machine(name, "default", on="nowhere"))
    path = f"/apis/novacron.io/v1alpha1/namespaces/default/virtualmachines/{name}/status"
    command = [sys.executable, "-m", "novacron.app.entry", "explain", "vm", name]
    environment = {**os.environ, "KUBECONFIG": str(api.kubeconfig)}

    def explained(status: str, message: str, host: str | None = None) -> list[str]:
        placed = {"type": "Placed", "status": status, "reason": "Tested", "message": message}
        when = {"lastTransitionTime": "2026-11-15T12:00:00Z"}
        told = {"status": {"conditions": [placed | when], "nodeName": host}}
        api.call("PATCH", path, told, merge=True)
        said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return [line.replace(name, "vm") for line in said.stdout.partition("\n\n")[0].splitlines()]

    yield explained
    api.delete_machine("default", name)


def test_a_machine_without_a_host_says_why_it_got_none_when_it_was_tried(explain: Explain) -> None:
    """Hosts may fit, and the machine has none all the same."""
    first, tried, now = explain("False", UNSURE)
    assert (first, tried) == ("vm is on no host", f"when it was last tried: {UNSURE}")
    assert now.startswith("now: ")


def test_what_is_so_still_is_said_once(explain: Explain) -> None:
    """Nothing has changed since it was tried."""
    now = explain("False", UNSURE)[-1]
    assert explain("False", now.removeprefix("now: ")) == ["vm is on no host", now]


@pytest.mark.parametrize(
    ("status", "message", "line"),
    [
        ("True", "2/2 hosts fit", "when it was placed: 2/2 hosts fit"),
        ("False", FULL, f"when it was last tried: {FULL}"),
    ],
)
def test_a_machine_with_a_host_says_how_it_was_placed_or_why_it_cannot_grow_there(
    explain: Explain, status: str, message: str, line: str
) -> None:
    """The first is long ago, the second is what keeps it as it is."""
    first, then, now = explain(status, message, host="a")
    assert (first, then) == ("vm is on host a", line)
    assert now.startswith("if it were placed now: ")
