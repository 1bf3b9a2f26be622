"""Machines that somebody replaces whole, annotations and finalizers included, as kubectl does."""

import json

from e2e.conftest import Stage
from e2e.test_moves import annotate, hosts_of, novacron, pair, placed, result
from machines import Object, condition, virtual_machine
from novacron.core.machine import Power
from novacron.localcluster.errors import LocalClusterError

TRIES = 5


def replace(stage: Stage, name: str, **template: object) -> None:
    """Put a manifest in the place of a machine."""
    body = virtual_machine(name, stage.namespace, **template)
    for tries_left in reversed(range(TRIES)):
        try:
            stage.operator.plane.kubectl("replace", "-f", "-", input=json.dumps(body))
        except LocalClusterError as error:
            # It reads, then writes; the operator may have told of a move's progress in between.
            if "(Conflict)" not in str(error) or not tries_left:
                raise
        else:
            return


def selector(stage: Stage, **more: str) -> dict[str, str]:
    """Return labels that the hosts of a pair have."""
    return {"test/pair": stage.namespace, **more}


def test_a_machine_that_is_replaced_amid_a_move_goes_on_with_it(stage: Stage) -> None:
    """The record of the decision is gone, and yet nobody makes a second one where it was."""
    here, there = pair(stage, delays={"move": "3s"})
    before = placed(stage, "web", here)
    annotate(stage, "web", migrate_to=there)
    moving = stage.until("web", lambda obj: "migration" in obj["status"])
    assert moving["status"]["migration"]["mode"] == "Live"
    replace(stage, "web", nodeSelector=selector(stage))
    done = stage.until("web", lambda obj: result(obj) is not None)
    assert "novacron.io/move" in moving["metadata"]["annotations"]
    assert done["status"]["migration"]["result"] == "Succeeded"
    assert done["status"]["nodeName"] == there
    assert done["status"]["vmID"] == before["status"]["vmID"]
    assert hosts_of(stage, "web") == [(there, Power.ON)]


def test_a_machine_that_is_replaced_amid_a_move_can_still_be_had_stay(stage: Stage) -> None:
    """Whoever asks for that knows nothing of records."""
    here, there = pair(stage, delays={"move": "1h"})
    placed(stage, "web", here)
    annotate(stage, "web", migrate_to=there)
    stage.until("web", lambda obj: obj["status"]["phase"] == "Migrating")
    replace(stage, "web", nodeSelector=selector(stage))
    told = novacron(stage, "vm", "migrate", "web", "--cancel", "--wait")
    assert told.stdout == f"virtualmachines.novacron.io/web stays on {here}\n"
    cancel = "novacron.io/migrate-cancel"
    stage.until("web", lambda obj: cancel not in obj["metadata"]["annotations"])
    assert hosts_of(stage, "web") == [(here, Power.ON)]


def test_room_is_held_for_a_machine_that_is_replaced_amid_a_move(stage: Stage) -> None:
    """Also its devices."""
    gpu = {"type": "gpu", "vendor": "nvidia", "model": "tesla-t4"}
    slow = {"delays": {"move": "3s"}, "devices": [{"address": "0000:3b:00.0", **gpu}]}
    here, there = pair(stage, **slow)
    placed(stage, "trainer", here, devices=[{"type": "gpu"}])
    annotate(stage, "trainer", migrate_to=there, migrate_stop_allowed="true")
    moving = stage.until("trainer", lambda obj: "migration" in obj["status"])
    (set_aside,) = moving["status"]["migration"]["devices"]
    replace(stage, "trainer", nodeSelector=selector(stage), devices=[{"type": "gpu"}])
    done = stage.until("trainer", lambda obj: result(obj) is not None)
    assert done["status"]["migration"]["result"] == "Succeeded"
    assert "devices" not in done["status"]["migration"]
    assert done["status"]["nodeName"] == there
    assert done["status"]["devices"] == [set_aside]


def test_a_machine_that_was_replaced_follows_its_selector(stage: Stage) -> None:
    """Whether that changed with it or later; and one whose host will do stays."""
    here, there = pair(stage)
    placed(stage, "web", here)
    replace(stage, "web", nodeSelector=selector(stage))
    stage.until("web", _is_on_record)
    assert hosts_of(stage, "web") == [(here, Power.ON)]
    replace(stage, "web", nodeSelector=selector(stage, **{"test/side": "b"}))
    stage.until("web", lambda obj: obj["status"]["nodeName"] == there)
    stage.until("web", _is_on_record)
    side = {"spec": {"template": {"spec": {"nodeSelector": {"test/side": "a"}}}}}
    stage.api.patch_machine(stage.namespace, "web", side)
    stage.until("web", lambda obj: obj["status"]["nodeName"] == here)


def _is_on_record(obj: Object) -> bool:
    metadata = obj["metadata"]
    recorded = "novacron.io/placement" in (metadata.get("annotations") or {})
    return recorded and "novacron.io/machine" in (metadata.get("finalizers") or ())


def test_a_placement_that_somebody_writes_himself_places_nothing(stage: Stage) -> None:
    """Else whoever may edit a machine could have any room and any device of any host."""
    here, there = pair(stage)
    nowhere = virtual_machine("forged", stage.namespace, nodeSelector={"no/such": "host"})
    made = stage.api.create(nowhere)
    stage.until("forged", lambda obj: condition(obj, "Placed").get("reason") == "NoHostFits")
    size = {"cpu": 1, "memory": "512Mi", "disk": "1Gi"}
    record = {"uid": made["metadata"]["uid"], "host": here, **size}
    notes = {"novacron.io/placement": json.dumps(record, sort_keys=True)}
    stage.api.patch_machine(
        stage.namespace,
        "forged",
        {"metadata": {"annotations": notes, "finalizers": ["novacron.io/machine"]}},
    )
    # Every host was asked whether it has the machine; then all that nobody of us wrote goes.
    stage.until("forged", lambda obj: not _is_on_record(obj))
    placed(stage, "honest", there)
    assert hosts_of(stage, "forged") == []


def test_a_move_that_somebody_writes_himself_moves_nothing(stage: Stage) -> None:
    """Nor is a machine begun anew elsewhere whose host was never off."""
    here, there = pair(stage)
    before = placed(stage, "steady", here)
    record = {"uid": before["metadata"]["uid"], "id": "7", "source": here, "target": there}
    lost = {"live": False, "lost": True, "why": ""}
    notes = {"novacron.io/move": json.dumps(record | lost, sort_keys=True)}
    stage.api.patch_machine(stage.namespace, "steady", {"metadata": {"annotations": notes}})
    done = stage.until(
        "steady", lambda obj: "novacron.io/move" not in (obj["metadata"].get("annotations") or {})
    )
    assert "migration" not in done["status"]
    assert hosts_of(stage, "steady") == [(here, Power.ON)]
