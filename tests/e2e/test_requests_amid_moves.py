"""What becomes of a request that is made while a machine is on its way already."""

import pytest

from e2e.conftest import Stage
from e2e.test_moves import annotate, begun, hosts_of, novacron, placed, result
from machines import Object
from novacron.core.machine import Power

TO = "novacron.io/migrate-to"


@pytest.fixture
def three(stage: Stage) -> tuple[str, str, str]:
    """Hosts from where, to where, and to where else; the first is left when the test says so."""
    label = {"test/pair": stage.namespace}
    here = stage.add_host(simulation={"delays": {"move": "1h"}}, labels=label)
    there, asked = (stage.add_host(labels=label) for _ in range(2))
    return here, there, asked


def on_its_way(stage: Stage, name: str, to: str) -> Object:
    """Wait until a machine is on its way to a host, and return it."""

    def moves(obj: Object) -> bool:
        migration = obj["status"].get("migration") or {}
        return obj["status"]["phase"] == "Migrating" and migration.get("targetNode") == to

    return stage.until(name, moves)


def told_amid(stage: Stage, name: str, there: str, *words: str) -> str:
    """Run a command that waits, and let the move end when it has told of that; return its answer.

    Nobody else has to be quick enough for it.
    """
    with begun(stage, *words, "--wait") as process:
        assert process.stderr is not None
        told = ""
        while f"{name}: Migrating to {there}: " not in told:
            line = process.stderr.readline()
            assert line, f"it ended: {told}"
            told += line
        stage.arrive(name)
        said, rest = process.communicate()
    assert process.returncode == 0, told + rest
    return said


def test_a_machine_that_is_drained_goes_on_to_the_host_that_somebody_asked_for(
    stage: Stage, three: tuple[str, str, str]
) -> None:
    """Whoever waits is told of that host, and not of the one where it came by on the way."""
    here, there, asked = three
    placed(stage, "web", here)
    stage.close(asked)
    novacron(stage, "host", "drain", here, namespaced=False)
    on_its_way(stage, "web", there)
    stage.open(asked)
    said = told_amid(stage, "web", there, "vm", "migrate", "web", "--to", asked)
    assert f"web moved to {asked} (" in said
    assert hosts_of(stage, "web") == [(asked, Power.ON)]


def test_a_request_for_where_a_machine_is_going_is_answered_when_it_has_come(
    stage: Stage, three: tuple[str, str, str]
) -> None:
    """It is not refused because the machine is there by then, nor sent on from there."""
    here, there, _ = three
    placed(stage, "web", here)
    annotate(stage, "web", migrate_to=there)
    on_its_way(stage, "web", there)
    said = told_amid(stage, "web", there, "vm", "migrate", "web", "--to", there)
    assert f"web moved to {there} (" in said
    done = stage.until("web", lambda obj: result(obj) is not None)
    assert TO not in done["metadata"]["annotations"]


def test_a_machine_whose_move_is_cancelled_goes_where_it_is_asked_to_then(
    stage: Stage, three: tuple[str, str, str]
) -> None:
    """With annotations alone, and one right after the other."""
    here, there, asked = three
    before = placed(stage, "web", here)
    annotate(stage, "web", migrate_to=there)
    on_its_way(stage, "web", there)
    annotate(stage, "web", migrate_cancel="true")
    annotate(stage, "web", migrate_to=asked)
    arrives(stage, "web", here, asked, before)


def test_so_does_one_that_was_replaced_amid_its_move(
    stage: Stage, three: tuple[str, str, str]
) -> None:
    """Nothing but its status tells of the move, and nothing of which move was cancelled."""
    here, there, asked = three
    before = placed(stage, "web", here)
    annotate(stage, "web", migrate_to=there)
    notes = on_its_way(stage, "web", there)["metadata"]["annotations"]
    lost = dict.fromkeys(notes)
    words = {"novacron.io/migrate-cancel": "true", TO: asked}
    stage.api.patch_machine(
        stage.namespace, "web", {"metadata": {"annotations": lost | words, "finalizers": None}}
    )
    arrives(stage, "web", here, asked, before)


def arrives(stage: Stage, name: str, here: str, asked: str, before: Object) -> None:
    """See that a machine goes where it was asked to, and is still the same one."""
    on_its_way(stage, name, asked)
    stage.arrive(name)
    done = stage.until(name, lambda obj: result(obj) == "Succeeded")
    migration = done["status"]["migration"]
    assert (migration["sourceNode"], migration["targetNode"]) == (here, asked)
    assert done["status"]["vmID"] == before["status"]["vmID"]
