"""What becomes of a request that is made while a machine is on its way already."""

import pytest

from e2e.conftest import Stage
from e2e.test_moves import annotate, hosts_of, novacron, pair, placed, result
from novacron.core.machine import Power

TO = "novacron.io/migrate-to"


@pytest.fixture
def three(stage: Stage) -> tuple[str, str, str]:
    """Hosts from where, to where, and to where else; a command is told while a machine moves."""
    here, there = pair(stage, delays={"move": "6s"})
    return here, there, stage.add_host(labels={"test/pair": stage.namespace})


def test_a_machine_that_is_drained_goes_on_to_the_host_that_somebody_asked_for(
    stage: Stage, three: tuple[str, str, str]
) -> None:
    """Whoever waits is told of that host, and not of the one where it came by on the way."""
    here, there, asked = three
    placed(stage, "web", here)
    stage.close(asked)
    novacron(stage, "host", "drain", here, namespaced=False)
    moving = stage.until("web", lambda obj: obj["status"]["phase"] == "Migrating")
    assert moving["status"]["migration"]["targetNode"] == there
    stage.open(asked)
    told = novacron(stage, "vm", "migrate", "web", "--to", asked, "--wait")
    assert f"web moved to {asked} (" in told.stdout
    assert f"web: Migrating to {there}:" in told.stderr
    assert hosts_of(stage, "web") == [(asked, Power.ON)]


def test_a_request_for_where_a_machine_is_going_is_answered_when_it_has_come(
    stage: Stage, three: tuple[str, str, str]
) -> None:
    """It is not refused because the machine is there by then, nor sent on from there."""
    here, there, _ = three
    placed(stage, "web", here)
    annotate(stage, "web", migrate_to=there)
    stage.until("web", lambda obj: obj["status"]["phase"] == "Migrating")
    told = novacron(stage, "vm", "migrate", "web", "--to", there, "--wait")
    assert f"web moved to {there} (" in told.stdout
    done = stage.until("web", lambda obj: result(obj) is not None)
    assert TO not in done["metadata"]["annotations"]


def test_a_machine_whose_move_is_cancelled_goes_where_it_is_asked_to_then(
    stage: Stage, three: tuple[str, str, str]
) -> None:
    """With annotations alone, and one right after the other."""
    here, there, asked = three
    before = placed(stage, "web", here)
    annotate(stage, "web", migrate_to=there)
    stage.until("web", lambda obj: obj["status"]["phase"] == "Migrating")
    annotate(stage, "web", migrate_cancel="true")
    annotate(stage, "web", migrate_to=asked)
    done = stage.until("web", lambda obj: result(obj) == "Succeeded")
    migration = done["status"]["migration"]
    assert (migration["sourceNode"], migration["targetNode"]) == (here, asked)
    assert done["status"]["vmID"] == before["status"]["vmID"]
