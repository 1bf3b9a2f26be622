"""What becomes of requests to move on which nothing can be done, or nothing is to be done."""

from typing import Any

import pytest

from novacron.runtime.resource import Key
from unit.controllers.office import Office

MIGRATE_TO, CANCEL = "novacron.io/migrate-to", "novacron.io/migrate-cancel"
BEFORE = {"sourceNode": "z", "targetNode": "a", "result": "Succeeded"}


@pytest.fixture
def office() -> Office:
    """Host a, where machines are."""
    office = Office()
    office.add_host("a")
    return office


async def told(office: Office) -> dict[str, Any]:
    """Have the mover decide about a machine; return what it says of the move."""
    await office.mover.reconcile(Key("n", "m"))
    migration: dict[str, Any] = office.machine("m")["status"]["migration"]
    return migration


@pytest.mark.parametrize("before", [{}, {"migration": BEFORE}])
async def test_a_request_that_is_withdrawn_before_it_was_decided_is_told_as_cancelled(
    office: Office, before: dict[str, Any]
) -> None:
    """Whoever waits for the answer would else be told of an older move, or of none."""
    office.add_host("b")
    office.add_machine("m", "a", {MIGRATE_TO: "b", CANCEL: "true"}, **before)
    said = await told(office)
    assert (said["result"], said["reason"]) == ("Cancelled", "Cancelled")
    assert (said["sourceNode"], said["targetNode"]) == ("a", "b")
    assert not {MIGRATE_TO, CANCEL} & office.machine("m")["metadata"]["annotations"].keys()


@pytest.mark.parametrize(("declared", "why"), [(True, "is not ready"), (False, "is not declared")])
async def test_a_machine_is_not_asked_for_ever_to_go_where_something_of_it_cannot_be_removed(
    office: Office, *, declared: bool, why: str
) -> None:
    """It would be another machine's, or an older state of its own."""
    if declared:
        office.add_host("b", answers=False)
    office.add_machine("m", "a", {MIGRATE_TO: "b"}, leftoverHosts=["b"])
    said = await told(office)
    assert (said["result"], said["reason"]) == ("Refused", "LeftoversThere")
    assert said["message"] == f"host b still has something of it from before, and {why}"
    assert MIGRATE_TO not in office.machine("m")["metadata"]["annotations"]


async def test_a_machine_waits_a_moment_where_something_of_it_is_being_removed(
    office: Office,
) -> None:
    """It has just come from there, mostly."""
    office.add_host("b")
    office.add_machine("m", "a", {MIGRATE_TO: "b"}, leftoverHosts=["b"])
    assert await office.mover.reconcile(Key("n", "m")) is not None
    assert MIGRATE_TO in office.machine("m")["metadata"]["annotations"]


async def test_what_is_refused_does_not_have_an_older_move_forgotten(office: Office) -> None:
    """Whoever kept its record could else put it back, and it would begin again."""
    last = {**BEFORE, "id": "7"}
    office.add_machine("m", "a", {MIGRATE_TO: "nowhere"}, migration=last)
    said = await told(office)
    assert (said["result"], said["id"]) == ("Refused", "7")
