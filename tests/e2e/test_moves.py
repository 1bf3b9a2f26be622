"""Machines that move between simulated hosts: asked for, drained, or by changed wishes."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from api import Refused
from e2e.conftest import Stage
from machines import condition, virtual_machine
from novacron.core.machine import Power
from operators import eventually

Object = dict[str, Any]

REPOSITORY = Path(__file__).parents[2]
SLOWLY = {"delays": {"move": "2s"}}


def annotate(stage: Stage, name: str, **words: str | None) -> None:
    """Write annotations as kubectl would."""
    notes = {f"novacron.io/{key.replace('_', '-')}": text for key, text in words.items()}
    stage.api.patch_machine(stage.namespace, name, {"metadata": {"annotations": notes}})


def result(obj: Object) -> str | None:
    """Return how the last move ended, once its record was taken away."""
    if is_moving(obj):
        return None
    found: str | None = (obj["status"].get("migration") or {}).get("result")
    return found


def pair(stage: Stage, **simulation: Any) -> tuple[str, str]:
    """Declare two hosts that the same machines may choose."""
    label = {"test/pair": stage.namespace}
    first = stage.add_host(simulation=simulation, labels={**label, "test/side": "a"})
    return first, stage.add_host(simulation=simulation, labels={**label, "test/side": "b"})


def placed(stage: Stage, name: str, host: str, **template: Any) -> Object:
    """Have a machine run on one of the hosts of a pair."""
    others = [each for each in stage.hosts if each != host]
    stage.close(*others)
    selector = {"test/pair": stage.namespace}
    stage.api.create(virtual_machine(name, stage.namespace, nodeSelector=selector, **template))
    obj = stage.until_running(name)
    stage.open(*others)
    assert obj["status"]["nodeName"] == host
    return obj


def hosts_of(stage: Stage, name: str) -> list[tuple[str, Power]]:
    """Return where a machine really is."""
    with stage.world() as world:
        return [(each.host, each.power) for each in world.machines() if each.name == name]


def test_a_machine_moves_where_it_is_asked_to(stage: Stage) -> None:
    """The whole of status.migration is there: where to, since when, how far, and how it ended."""
    here, there = pair(stage, **SLOWLY)
    before = placed(stage, "web", here)
    annotate(stage, "web", migrate_to=there)
    moving = stage.until("web", lambda obj: obj["status"]["phase"] == "Migrating")
    assert moving["status"]["nodeName"] == here
    assert moving["status"]["migration"]["targetNode"] == there
    assert moving["status"]["migration"]["startTime"]
    assert condition(moving, "Ready")["status"] == "True"
    half = stage.until("web", lambda obj: 0 < obj["status"]["migration"]["progress"] < 100)
    assert half["status"]["nodeName"] == here
    done = stage.until("web", lambda obj: result(obj) is not None)
    migration = done["status"]["migration"]
    assert (migration["result"], migration["progress"]) == ("Succeeded", 100)
    assert migration["transferredBytes"] > 0
    assert done["status"]["nodeName"] == there
    assert done["status"]["vmID"] == before["status"]["vmID"]
    assert done["status"]["ipAddresses"] == before["status"]["ipAddresses"]
    assert hosts_of(stage, "web") == [(there, Power.ON)]
    stage.until_event("web", "Migrated")


def test_room_is_held_on_both_hosts_while_a_machine_moves(stage: Stage) -> None:
    """Else another machine could be promised what the one on its way needs."""
    label = {"test/pair": stage.namespace}
    here = stage.add_host(simulation={"delays": {"move": "3s"}}, labels=label, cpu=4)
    there = stage.add_host(labels=label, cpu=4)
    placed(stage, "big", here, cpu=3)
    annotate(stage, "big", migrate_to=there)
    stage.until("big", lambda obj: obj["status"]["phase"] == "Migrating")
    stage.api.create(virtual_machine("late", stage.namespace, cpu=2, nodeSelector=label))
    late = stage.until("late", lambda obj: bool(condition(obj, "Placed")))
    assert "2 lack CPU" in condition(late, "Placed")["message"]
    said = novacron(stage, "explain", "vm", "late").stdout
    assert "2 lack CPU" in said  # asked of the machines, not of the one who placed them
    stage.until("big", lambda obj: result(obj) == "Succeeded")
    assert stage.until_running("late")["status"]["nodeName"] == here


def test_a_move_is_cancelled(stage: Stage) -> None:
    """The guest stays where it runs, and the request is gone."""
    here, there = pair(stage, delays={"move": "1h"})
    placed(stage, "stays", here)
    annotate(stage, "stays", migrate_to=there)
    stage.until("stays", lambda obj: obj["status"]["phase"] == "Migrating")
    annotate(stage, "stays", migrate_cancel="true")
    done = stage.until("stays", lambda obj: result(obj) is not None)
    assert done["status"]["migration"]["result"] == "Cancelled"
    assert done["status"]["nodeName"] == here
    assert not any("migrate" in name for name in done["metadata"]["annotations"])
    assert hosts_of(stage, "stays") == [(here, Power.ON)]


def test_a_machine_that_moves_can_be_deleted(stage: Stage) -> None:
    """Nothing of it is left on either host."""
    here, there = pair(stage, delays={"move": "1h"})
    placed(stage, "doomed", here)
    annotate(stage, "doomed", migrate_to=there)
    stage.until("doomed", lambda obj: obj["status"]["phase"] == "Migrating")
    stage.api.delete_machine(stage.namespace, "doomed")
    stage.until_gone("doomed")
    assert hosts_of(stage, "doomed") == []


def test_a_machine_that_may_not_move_says_so_before_and_when_asked(stage: Stage) -> None:
    """The condition tells beforehand; a request is answered with the same reason."""
    here, there = pair(stage)
    placed(stage, "fixed", here)
    policy = {"spec": {"migrationPolicy": {"allowLiveMigration": False}}}
    stage.api.patch_machine(stage.namespace, "fixed", policy)
    stage.until("fixed", lambda obj: condition(obj, "LiveMigratable")["reason"] == "NotAllowed")
    annotate(stage, "fixed", migrate_to=there)
    done = stage.until("fixed", lambda obj: (obj["status"].get("migration") or {}) != {})
    migration = done["status"]["migration"]
    assert (migration["result"], migration["reason"]) == ("Refused", "NotAllowed")
    annotate(stage, "fixed", migrate_to=there, migrate_stop_allowed="true")
    done = stage.until("fixed", lambda obj: result(obj) == "Succeeded")
    assert stage.until_running("fixed")["status"]["nodeName"] == there


def test_a_machine_with_devices_is_stopped_to_get_others_elsewhere(stage: Stage) -> None:
    """Without consent it stays; those of the other host are nobody else's from then on."""
    label = {"test/pair": stage.namespace}
    gpu = {"type": "gpu", "vendor": "nvidia", "model": "tesla-t4"}
    slow: Object = {"delays": {"move": "4s"}}
    here, there = (
        stage.add_host(labels=label, simulation=slow | {"devices": [{"address": each, **gpu}]})
        for each in ("0000:3b:00.0", "0000:af:00.0")
    )
    before = placed(stage, "trainer", here, devices=[{"type": "gpu"}])
    assert migratable(before) == ("False", "HasDevices")
    annotate(stage, "trainer", migrate_to="any")
    refused = stage.until("trainer", lambda obj: reason(obj) == "HasDevices")
    assert "--stop-allowed" in refused["status"]["migration"]["message"]
    annotate(stage, "trainer", migrate_to="any", migrate_stop_allowed="true")
    stage.until("trainer", lambda obj: obj["status"]["phase"] == "Migrating")
    wishes = {"devices": [{"type": "gpu"}], "nodeSelector": label}
    stage.api.create(virtual_machine("late", stage.namespace, **wishes))
    taken = "0/2 hosts fit: 2 lack devices"
    stage.until("late", lambda obj: taken in condition(obj, "Placed").get("message", ""))
    done = stage.until("trainer", lambda obj: result(obj) == "Succeeded")
    assert done["status"]["nodeName"] == there
    assert [each["address"] for each in done["status"]["devices"]] == ["0000:af:00.0"]
    stage.until_running("trainer")
    late = stage.until_running("late")
    with stage.world() as world:
        assert world.devices() == {
            (there, "0000:af:00.0"): done["metadata"]["uid"],
            (here, "0000:3b:00.0"): late["metadata"]["uid"],
        }


def test_a_machine_that_is_to_travel_encrypted_says_beforehand_that_it_cannot(
    stage: Stage,
) -> None:
    """As long as a host has no certificates; it goes where there are some, and nowhere else."""
    here, bare = pair(stage, migration={"tls": False})
    placed(stage, "secret", here)
    policy = {"spec": {"migrationPolicy": {"encrypted": True}}}
    stage.api.patch_machine(stage.namespace, "secret", policy)
    said = stage.until("secret", lambda obj: migratable(obj) == ("False", "NoCertificates"))
    assert f"host {here} has no certificates" in condition(said, "LiveMigratable")["message"]
    annotate(stage, "secret", migrate_to=bare, migrate_stop_allowed="true")
    done = stage.until("secret", lambda obj: result(obj) == "Refused")
    assert done["status"]["migration"]["reason"] == "NoCertificates"
    has = {"spec": {"simulation": {"migration": {"tls": True}}}}
    stage.api.patch_host(here, has)
    stage.until(
        "secret", lambda obj: "no other host" in condition(obj, "LiveMigratable")["message"]
    )
    there = stage.add_host(labels={"test/pair": stage.namespace})
    stage.until("secret", lambda obj: migratable(obj) == ("True", "MigrationCapable"))
    annotate(stage, "secret", migrate_to=bare)
    refused = stage.until("secret", lambda obj: reason(obj) == "NoHostFits")
    assert "cannot do EncryptedMigration" in refused["status"]["migration"]["message"]
    annotate(stage, "secret", migrate_to="any")
    done = stage.until("secret", lambda obj: result(obj) == "Succeeded")
    assert done["status"]["nodeName"] == there


def migratable(obj: Object) -> tuple[str, str]:
    """Return what is said of whether a machine can move."""
    said = condition(obj, "LiveMigratable")
    return said["status"], said["reason"]


def reason(obj: Object) -> str | None:
    """Return why the last move ended as it did."""
    found: str | None = (obj["status"].get("migration") or {}).get("reason")
    return found


@pytest.mark.parametrize(
    ("to", "because", "words"),
    [("nowhere", "NoHostFits", "not nowhere"), ("here", "AlreadyThere", "it is on host")],
)
def test_a_request_that_cannot_be_met_is_answered(
    stage: Stage, to: str, because: str, words: str
) -> None:
    """In one sentence, and once."""
    here, _ = pair(stage)
    placed(stage, "asks", here)
    annotate(stage, "asks", migrate_to=here if to == "here" else to)
    done = stage.until("asks", lambda obj: result(obj) == "Refused")
    assert done["status"]["migration"]["reason"] == because
    assert words in done["status"]["migration"]["message"]
    stage.until("asks", lambda obj: "novacron.io/migrate-to" not in obj["metadata"]["annotations"])


def test_a_machine_follows_its_changed_selector(stage: Stage) -> None:
    """And one whose host still will do stays where it is."""
    here, there = pair(stage)
    placed(stage, "picky", here)
    pick = {"spec": {"template": {"spec": {"nodeSelector": {"test/side": "b"}}}}}
    stage.api.patch_machine(stage.namespace, "picky", pick)
    done = stage.until("picky", lambda obj: result(obj) is not None)
    assert done["status"]["migration"]["result"] == "Succeeded"
    assert done["status"]["nodeName"] == there
    same = {"spec": {"template": {"spec": {"nodeSelector": {"test/side": None}}}}}
    stage.api.patch_machine(stage.namespace, "picky", {**same})
    stage.until(
        "picky", lambda obj: obj["status"]["observedGeneration"] == obj["metadata"]["generation"]
    )
    assert hosts_of(stage, "picky") == [(there, Power.ON)]


def required(*terms: Object) -> Object:
    """Return what a rule insists on."""
    return {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}


def near(group: str) -> Object:
    """Return a term about machines of a group on the same host."""
    return {"labelSelector": {"matchLabels": {"group": group}}}


def member(stage: Stage, name: str, host: str, group: str, **template: Any) -> None:
    """Have a machine of a group run on a host."""
    others = [each for each in stage.hosts if each != host]
    stage.close(*others)
    body = virtual_machine(name, stage.namespace, **template)
    body["spec"]["template"]["metadata"] = {"labels": {"group": group}}
    stage.api.create(body)
    assert stage.until_running(name)["status"]["nodeName"] == host
    stage.open(*others)


@pytest.mark.parametrize("kind", ["nodeAffinity", "podAffinity", "podAntiAffinity"])
def test_a_machine_follows_its_changed_affinity(stage: Stage, kind: str) -> None:
    """To hosts with other labels, to machines it wants near, and away from those it does not."""
    here, there = pair(stage)
    member(stage, "friend", there, "friends")
    member(stage, "foe", here, "foes")
    placed(stage, "picky", here)
    side = {"key": "test/side", "operator": "In", "values": ["b"]}
    rules: dict[str, Object] = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [side]}]
            }
        },
        "podAffinity": required(near("friends")),
        "podAntiAffinity": required(near("foes")),
    }
    rule = {"spec": {"template": {"spec": {"affinity": {kind: rules[kind]}}}}}
    stage.api.patch_machine(stage.namespace, "picky", rule)
    done = stage.until("picky", lambda obj: result(obj) is not None)
    assert done["status"]["migration"]["result"] == "Succeeded"
    assert done["status"]["nodeName"] == there
    assert hosts_of(stage, "picky") == [(there, Power.ON)]


def test_a_drain_puts_no_machines_together_that_must_be_apart(stage: Stage) -> None:
    """It waits and says for what; once there is a host without the other one, it goes on."""
    here, there = pair(stage)
    apart = {"podAntiAffinity": required(near("twins"))}
    chosen = {"nodeSelector": {"test/pair": stage.namespace}, "affinity": apart}
    member(stage, "one", here, "twins", **chosen)
    member(stage, "two", there, "twins", **chosen)
    stage.api.patch_host(here, {"spec": {"drain": {}}})
    stays = stage.until("one", lambda obj: reason(obj) == "NoHostFits")
    assert "machines with group=twins" in stays["status"]["migration"]["message"]
    waits = stage.until_host(here, lambda obj: condition(obj, "Drained").get("status") == "False")
    assert condition(waits, "Drained")["message"] == "1 machine is left, which stays for now"
    wait = ("--wait", "--timeout", "2")
    told = novacron(stage, "host", "drain", here, *wait, namespaced=False, fails=True)
    # It begins anew, and may be told first that nobody has looked since.
    lines = [line for line in told.stderr.splitlines() if line != f"{here}: not looked at yet"]
    assert lines == [
        f"{here}: 1 machine is left, which stays for now",
        f"error: {here} is not drained after 2 s",
        f"  {stage.namespace}/one: {stays['status']['migration']['message']}",
    ]
    assert hosts_of(stage, "one") == [(here, Power.ON)]
    empty = stage.add_host(labels={"test/pair": stage.namespace})
    stage.until_host(here, lambda obj: condition(obj, "Drained")["status"] == "True")
    assert hosts_of(stage, "one") == [(empty, Power.ON)]
    assert hosts_of(stage, "two") == [(there, Power.ON)]


def test_a_drained_host_is_left_by_all_its_machines(stage: Stage) -> None:
    """A few at a time, running and stopped ones, and new ones stay away until it is over."""
    here, there = pair(stage, delays={"move": "500ms"})
    for number in range(3):
        placed(stage, f"vm-{number}", here)
    placed(stage, "off", here)
    stage.api.patch_machine(stage.namespace, "off", {"spec": {"running": False}})
    stage.until("off", lambda obj: obj["status"]["phase"] == "Stopped")
    stage.api.patch_host(here, {"spec": {"drain": {"atOnce": 1}}})
    most = 0

    def empty() -> bool:
        nonlocal most
        with stage.world() as world:
            machines = world.machines()
        most = max(most, sum(each.changing == "move" for each in machines))
        return not any(each.host == here for each in machines)

    eventually(empty, lambda: f"the host is left: {stage.operator.log}")
    assert most == 1
    drained = stage.until_host(here, lambda obj: condition(obj, "Drained")["status"] == "True")
    assert condition(drained, "Drained")["message"] == "no machine is left on it"
    off = stage.until("off", lambda obj: result(obj) == "Succeeded")
    assert off["status"]["nodeName"] == there
    assert hosts_of(stage, "off") == [(there, Power.OFF)]
    stage.api.patch_host(here, {"spec": {"drain": None}})
    stage.until_host(here, lambda obj: not condition(obj, "Drained"))


def test_a_drain_tells_how_many_machines_are_left_and_on_their_way(stage: Stage) -> None:
    """In the Host's condition, and to whoever waits for the command: fewer and fewer."""
    here, _ = pair(stage, delays={"move": "4s"})
    for number in range(3):
        placed(stage, f"vm-{number}", here)
    command = ("host", "drain", here, "--at-once", "2", "--wait")
    begun = "3 machines are left, 2 of them on their way"
    with ThreadPoolExecutor() as pool:
        waits = pool.submit(novacron, stage, *command, namespaced=False)
        stage.until_host(here, lambda obj: drained(obj) == ("False", "Draining", begun))
        last = "1 machine is left, on its way"
        stage.until_host(here, lambda obj: drained(obj) == ("False", "Draining", last))
        told = waits.result()
    assert told.stdout == f"hosts.novacron.io/{here} drained\n"
    lines = [line.removeprefix(f"{here}: ") for line in told.stderr.splitlines()]
    assert begun in lines
    assert lines[-2:] == [last, "no machine is left on it"]
    left = [int(line.split()[0]) for line in lines if "left, " in line]
    assert left == sorted(left, reverse=True)


def test_a_drain_ends_when_its_host_is_uncordoned(stage: Stage) -> None:
    """The machine that is on its way goes on; the others stay where they are."""
    here, there = pair(stage, delays={"move": "8s"})  # a command is told meanwhile
    names = [f"vm-{number}" for number in range(3)]
    for name in names:
        placed(stage, name, here)
    novacron(stage, "host", "drain", here, "--at-once", "1", namespaced=False)
    begun = "3 machines are left, 1 of them on their way"
    stage.until_host(here, lambda obj: drained(obj) == ("False", "Draining", begun))
    novacron(stage, "host", "uncordon", here, namespaced=False)
    assert sum(map(is_moving, stage.api.machines(stage.namespace))) == 1, "it is over already"
    stage.until_host(here, lambda obj: not condition(obj, "Drained"))
    at = {name: stage.until(name, lambda obj: not is_moving(obj))["status"] for name in names}
    assert sorted(each["nodeName"] for each in at.values()) == sorted([there, here, here])
    placed(stage, "after", there)  # whoever moves machines has looked again by then
    assert [name for name in names if "migration" in stage.until_running(name)["status"]] == [
        name for name in names if at[name]["nodeName"] == there
    ]


def is_moving(obj: Object) -> bool:
    """Say whether a move of a machine is under way."""
    return "novacron.io/move" in (obj["metadata"].get("annotations") or {})


def drained(obj: Object) -> tuple[str | None, ...]:
    """Return what a host says of how far its machines have left."""
    said = condition(obj, "Drained")
    return said.get("status"), said.get("reason"), said.get("message")


def test_a_machine_that_was_on_its_way_to_a_drained_host_leaves_it_again(stage: Stage) -> None:
    """Until then the host is not drained, and nobody can delete it."""
    here, there = pair(stage, delays={"move": "8s"})  # it is asked by two commands meanwhile
    placed(stage, "late", here)
    annotate(stage, "late", migrate_to=there)
    stage.until("late", lambda obj: obj["status"]["phase"] == "Migrating")
    stage.api.patch_host(there, {"spec": {"drain": {}}})
    coming = ("False", "Draining", "1 machine is on the way to it")
    stage.until_host(there, lambda obj: drained(obj) == coming)
    with pytest.raises(Refused, match=f"host {there} cannot go: 1 machine is on the way to it"):
        stage.api.delete_host(there)
    told = novacron(stage, "host", "remove", there, namespaced=False, fails=True)
    assert f"{stage.namespace}/late" in told.stderr
    waited = novacron(stage, "host", "drain", there, "--wait", namespaced=False)
    assert f"{there}: {coming[2]}" in waited.stderr
    assert hosts_of(stage, "late") == [(here, Power.ON)]


def test_a_drain_without_consent_leaves_what_cannot_move_and_says_why(stage: Stage) -> None:
    """With consent it is stopped, moved and started."""
    here, there = pair(stage)
    placed(stage, "fixed", here)
    policy = {"spec": {"migrationPolicy": {"allowLiveMigration": False}}}
    stage.api.patch_machine(stage.namespace, "fixed", policy)
    stage.until("fixed", lambda obj: condition(obj, "LiveMigratable")["reason"] == "NotAllowed")
    stage.api.patch_host(here, {"spec": {"drain": {}}})
    done = stage.until("fixed", lambda obj: result(obj) == "Refused")
    assert done["status"]["migration"]["reason"] == "NotAllowed"
    stage.api.patch_host(here, {"spec": {"drain": {"stopAllowed": True}}})
    stage.until("fixed", lambda obj: result(obj) == "Succeeded")
    assert stage.until_running("fixed")["status"]["nodeName"] == there


def test_an_operator_that_is_killed_is_followed_by_one_that_goes_on(
    stage: Stage, tmp_path: Path
) -> None:
    """The record and the hosts tell all that is needed."""
    del tmp_path
    here, there = pair(stage, delays={"move": "3s"})
    placed(stage, "goes-on", here)
    annotate(stage, "goes-on", migrate_to=there)
    stage.until("goes-on", lambda obj: obj["status"]["phase"] == "Migrating")
    stage.operator.kill()
    stage.operator.start()
    done = stage.until("goes-on", lambda obj: result(obj) is not None)
    assert done["status"]["migration"]["result"] == "Succeeded"
    assert hosts_of(stage, "goes-on") == [(there, Power.ON)]


@pytest.mark.parametrize("example", ["02-migrate.yaml", "04-migrate-encrypted.yaml"])
def test_the_examples_move_when_the_command_line_asks(stage: Stage, example: str) -> None:
    """What the guide tells to type, and what is seen then."""
    here, there = pair(stage, delays={"move": "1500ms"})
    body = yaml.safe_load((REPOSITORY / "examples" / example).read_text())
    name = body["metadata"]["name"]
    body["metadata"]["namespace"] = stage.namespace
    body["spec"]["template"]["spec"]["nodeSelector"] = {"test/pair": stage.namespace}
    stage.api.create(body)
    start = stage.until_running(name)["status"]["nodeName"]
    other = there if start == here else here
    moved = novacron(stage, "vm", "migrate", name, "--to", other, "--wait")
    first, *_, last = moved.stderr.splitlines()
    assert first == f"virtualmachines.novacron.io/{name} is asked to move"
    assert f"{name}: Migrating to {other}: " in moved.stderr
    assert last == f"{name}: Running"
    assert f"moved to {other}" in moved.stdout
    refused = novacron(stage, "vm", "migrate", name, "--to", other, "--wait", fails=True)
    assert f"it is on host {other}" in refused.stderr
    still = novacron(stage, "vm", "migrate", name, "--cancel", fails=True)
    assert f"{name} does not move" in still.stderr


def test_a_move_is_cancelled_by_the_command_line(stage: Stage) -> None:
    """In the midst of it: the machine stays where it runs, and whoever waits is told."""
    here, there = pair(stage, delays={"move": "1h"})
    placed(stage, "stays", here)
    asked = novacron(stage, "vm", "migrate", "stays", "--to", there)
    assert asked.stdout == "virtualmachines.novacron.io/stays is asked to move\n"
    stage.until("stays", lambda obj: obj["status"]["phase"] == "Migrating")
    assert [each for each in hosts_of(stage, "stays") if each[0] == here]
    told = novacron(stage, "vm", "migrate", "stays", "--cancel", "--wait")
    assert told.stdout == f"virtualmachines.novacron.io/stays stays on {here}\n"
    done = stage.until_running("stays")
    assert done["status"]["migration"]["result"] == "Cancelled"
    assert (done["status"]["phase"], done["status"]["nodeName"]) == ("Running", here)
    assert hosts_of(stage, "stays") == [(here, Power.ON)]
    again = novacron(stage, "vm", "migrate", "stays", "--cancel", fails=True)
    assert again.stderr == "error: stays does not move\n"


def test_a_machine_without_a_host_is_not_asked_to_move(stage: Stage) -> None:
    """Nobody would answer, so whoever waits is told at once, and nothing is left to surprise."""
    here, _ = pair(stage)
    body = virtual_machine("homeless", stage.namespace, nodeSelector={"test/pair": "none"})
    stage.api.create(body)
    stage.until("homeless", lambda obj: condition(obj, "Placed").get("status") == "False")
    for where in ((), ("--to", here)):
        told = novacron(stage, "vm", "migrate", "homeless", *where, "--wait", fails=True)
        assert told.stderr.startswith("error: homeless has no host that it could leave: 0/")
        assert "test/pair=none" in told.stderr
    (obj,) = stage.api.machines(stage.namespace)
    assert "novacron.io/migrate-to" not in obj["metadata"].get("annotations", {})


def test_a_host_is_drained_and_taken_up_again_by_the_command_line(stage: Stage) -> None:
    """It waits until the last machine has left, and tells how many there are."""
    here, there = pair(stage, delays={"move": "500ms"})
    placed(stage, "web", here)
    drained = novacron(stage, "host", "drain", here, "--wait", namespaced=False)
    assert "no machine is left on it" in drained.stderr
    assert hosts_of(stage, "web") == [(there, Power.ON)]
    novacron(stage, "host", "uncordon", here, namespaced=False)
    spec = (stage.api.host(here) or {})["spec"]
    assert "drain" not in spec
    assert not spec["unschedulable"]


def novacron(
    stage: Stage, *words: str, namespaced: bool = True, fails: bool = False
) -> "subprocess.CompletedProcess[str]":
    """Run a command as a user would."""
    with begun(stage, *words, namespaced=namespaced) as process:
        said, told = process.communicate()
    assert (process.returncode != 0) is fails, said + told
    return subprocess.CompletedProcess(process.args, process.returncode, said, told)


def begun(stage: Stage, *words: str, namespaced: bool = True) -> "subprocess.Popen[str]":
    """Begin to run a command as a user would."""
    where = ("-n", stage.namespace) if namespaced else ()
    return subprocess.Popen(
        [sys.executable, "-m", "novacron.app.entry", *words, *where],
        env={**os.environ, "KUBECONFIG": str(stage.api.kubeconfig)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
