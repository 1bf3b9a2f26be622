"""Machines that are on their way to a host: it is neither empty nor to be let go."""

import json

import pytest

from machines import condition
from novacron.app.webhooks import deletion_of
from novacron.controllers.ledger import Occupancy
from novacron.runtime.resource import Key
from unit.controllers.office import Office

RECORD = {"uid": "uid-m", "id": "1", "source": "a", "target": "b", "live": True}
TO_B = {"novacron.io/move": json.dumps(RECORD)}


@pytest.fixture
def office() -> Office:
    """A machine that moves from host a to b."""
    office = Office()
    office.add_host("a")
    office.add_machine("m", "a", TO_B)
    return office


def test_a_machine_on_its_way_counts_for_both_hosts(office: Office) -> None:
    """For the new one until it has come, or does not come any more."""
    uid = frozenset({"uid-m"})
    assert office.ledger.occupancy("a") == Occupancy(uid, frozenset())
    assert office.ledger.occupancy("b") == Occupancy(frozenset(), uid)
    office.add_machine("m", "a", {})
    assert not office.ledger.occupancy("b")
    office.add_machine("m", "a", TO_B)
    office.add_machine("m", "b", {})
    assert not office.ledger.occupancy("a")
    assert office.ledger.occupancy("b") == Occupancy(uid, frozenset())


async def test_a_host_that_a_machine_is_on_its_way_to_is_not_drained(office: Office) -> None:
    """Whoever switches it off then would take the machine along."""
    office.add_host("b", drain={})
    await office.host_controller.reconcile(Key("", "b"))
    said = condition(office.host("b"), "Drained")
    assert (said["status"], said["message"]) == ("False", "1 machine is on the way to it")


async def test_a_host_that_a_machine_is_on_its_way_to_is_not_let_go(office: Office) -> None:
    """The machine would wait for ever on a host that nobody knows."""
    office.add_host("b", deleting=True)
    await office.host_controller.reconcile(Key("", "b"))
    assert office.host("b")["metadata"]["finalizers"]


def test_nobody_deletes_a_host_that_a_machine_is_on_its_way_to(office: Office) -> None:
    """They are told which machines are meant."""
    office.add_host("b")
    (said,) = deletion_of(office.host("b"), office.ledger.occupancy)
    assert said == "host b cannot go: 1 machine is on the way to it; move or delete them first"


@pytest.mark.parametrize(
    ("there", "coming", "said"),
    [
        (1, 0, "1 machine is on it"),
        (2, 1, "2 machines are on it and 1 machine is on the way to it"),
        (0, 3, "3 machines are on the way to it"),
    ],
)
def test_how_many_machines_there_are_is_said(there: int, coming: int, said: str) -> None:
    """Those that are there, and those that will be."""
    uids = [frozenset(map(str, range(count))) for count in (there, coming)]
    assert str(Occupancy(*uids)) == said
