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


async def test_a_machine_that_is_to_shrink_travels_with_what_it_still_has(office: Office) -> None:
    """It arrives as large as it is, and shrinks there: its new host has to have room for that."""
    office.add_host("b")
    office.add_machine("other", "b", {}, reservation=amounts(5))
    office.add_machine("m", "a", {MIGRATE_TO: "b"}, reservation=amounts(2), resources=has(4))
    said = await told(office)
    assert (said["result"], said["reason"]) == ("Refused", "NoHostFits")
    assert "4 asked, 3 free" in said["message"]


async def test_room_is_kept_for_all_that_a_machine_has_where_it_goes(office: Office) -> None:
    """Until it has shrunk there, which its status tells."""
    office.add_host("b")
    office.add_machine("m", "a", {MIGRATE_TO: "b"}, reservation=amounts(2), resources=has(4))
    await office.mover.reconcile(Key("n", "m"))
    office.add_machine("late", "a", {MIGRATE_TO: "b"}, reservation=amounts(5))
    await office.mover.reconcile(Key("n", "late"))
    said = office.machine("late")["status"]["migration"]
    assert (said["result"], said["reason"]) == ("Refused", "NoHostFits")


def amounts(cpu: int) -> dict[str, Any]:
    """Return what is reserved for a machine with so many CPUs."""
    return {"cpu": cpu, "memory": "1Gi", "disk": "10Gi"}


def has(cpu: int) -> dict[str, Any]:
    """Return what a status tells of a machine with so many CPUs."""
    return {name: {"available": amount} for name, amount in amounts(cpu).items()}
