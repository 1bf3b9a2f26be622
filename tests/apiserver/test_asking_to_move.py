"""What ``vm migrate`` writes and believes, in the place of an operator that nobody runs here."""

import os
import subprocess
import sys
from collections.abc import Iterator
from uuid import uuid4

import pytest

from api import Api
from declared import Object
from machines import host, virtual_machine
from operators import eventually

TO, STOP = "novacron.io/migrate-to", "novacron.io/migrate-stop-allowed"
CANCEL, RECORD = "novacron.io/migrate-cancel", "novacron.io/move"
WHEN = "2026-11-15T12:00:00Z"
UNDER_WAY = {"sourceNode": "a", "targetNode": "b", "mode": "Live", "startTime": WHEN}
COME = {**UNDER_WAY, "result": "Succeeded", "endTime": WHEN}


class Traveller:
    """A machine of which a test says how it fares."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.name = f"vm-{uuid4().hex[:8]}"
        self.called = f"virtualmachines.novacron.io/{self.name}"
        api.create(virtual_machine(self.name, "default"))

    def fares(self, migration: Object, **notes: str | None) -> None:
        """Write as an operator would what is under way, and which annotations are there."""
        path = f"/apis/novacron.io/v1alpha1/namespaces/default/virtualmachines/{self.name}/status"
        told = {"nodeName": migration["sourceNode"], "migration": migration}
        self.api.call("PATCH", path, {"status": told}, merge=True)
        self.note(**notes)

    def note(self, **notes: str | None) -> None:
        """Write annotations."""
        named = {f"novacron.io/{name.replace('_', '-')}": text for name, text in notes.items()}
        self.api.patch_machine("default", self.name, {"metadata": {"annotations": named}})

    def notes(self) -> dict[str, str]:
        """Return the annotations it has."""
        found = self.api.machine("default", self.name)
        assert found is not None
        return found["metadata"].get("annotations") or {}

    def migrate(self, *words: str) -> "subprocess.Popen[str]":
        """Run the command."""
        return subprocess.Popen(
            [sys.executable, "-m", "novacron.app.entry", "vm", "migrate", self.name, *words],
            env={**os.environ, "KUBECONFIG": str(self.api.kubeconfig)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def asked(self, *words: str) -> None:
        """Run a command that does not wait."""
        with self.migrate(*words) as command:
            assert command.wait() == 0, command.communicate()


@pytest.fixture
def traveller(api: Api) -> Iterator[Traveller]:
    """A machine on its way from a to b."""
    made = Traveller(api)
    made.fares(UNDER_WAY, move="{}")
    yield made
    api.delete_machine("default", made.name)


@pytest.fixture
def elsewhere(api: Api) -> Iterator[str]:
    """A host that somebody may ask for."""
    name = f"host-{uuid4().hex[:8]}"
    api.create(host(name))
    yield name
    api.delete_host(name)


def test_a_cancelled_move_stays_cancelled_when_the_next_is_asked_for(
    traveller: Traveller, elsewhere: str
) -> None:
    """It would go on to where nobody wants the machine any more."""
    traveller.asked("--cancel")
    traveller.asked("--to", elsewhere)
    assert traveller.notes() == {RECORD: "{}", CANCEL: "true", TO: elsewhere}


def test_who_has_a_machine_stay_takes_back_what_it_was_to_do_after_the_move(
    traveller: Traveller, elsewhere: str
) -> None:
    """Else it would set off again as soon as the move under way is ended."""
    traveller.asked("--to", elsewhere, "--stop-allowed")
    traveller.asked("--cancel")
    assert traveller.notes() == {RECORD: "{}", CANCEL: "true"}


def test_a_request_that_nobody_has_decided_on_is_withdrawn_by_who_answers_it(
    traveller: Traveller, elsewhere: str
) -> None:
    """And asking anew takes that back."""
    traveller.fares(COME, move=None)
    traveller.asked("--to", elsewhere)
    traveller.asked("--cancel")
    assert traveller.notes() == {CANCEL: "true", TO: elsewhere}
    traveller.asked("--to", elsewhere)
    assert traveller.notes() == {TO: elsewhere}


def test_a_move_whose_record_somebody_took_away_can_be_cancelled(traveller: Traveller) -> None:
    """As whoever replaces the object does: the move goes on by its status."""
    traveller.note(move=None)
    traveller.asked("--cancel")
    assert traveller.notes() == {CANCEL: "true"}


def test_who_waits_is_not_told_of_a_move_before_it_is_over(traveller: Traveller) -> None:
    """Though nothing asks for it any more, because somebody replaced the object."""
    with traveller.migrate("--wait", "--timeout", "60") as command:
        eventually(lambda: TO in traveller.notes(), lambda: "it is asked for")
        traveller.note(move=None, migrate_to=None)
        with pytest.raises(subprocess.TimeoutExpired):
            command.wait(2)
        traveller.fares(COME)
        told = command.communicate()
    assert told[0] == f"{traveller.called} moved to b\n"


def test_who_waits_hears_when_the_machine_came_to_another_host_than_was_asked_for(
    traveller: Traveller, elsewhere: str
) -> None:
    """As when its host was lost meanwhile: that is no success."""
    with traveller.migrate("--to", elsewhere, "--wait", "--timeout", "60") as command:
        eventually(lambda: TO in traveller.notes(), lambda: "it is asked for")
        traveller.fares(COME, move=None, migrate_to=None)
        told = command.communicate()
    assert command.returncode == 1, told
    assert told[1].endswith(f"error: {traveller.called} moved to b, and not to {elsewhere}\n")
