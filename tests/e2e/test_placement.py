"""Placement on a real API server: rules, devices, and what users are told about both."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml

from api import Refused
from e2e.conftest import Stage
from machines import condition, virtual_machine

EXAMPLE = Path(__file__).parents[2] / "examples/30-placement.yaml"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
Object = dict[str, Any]


def gpus(count: int) -> Object:
    return {
        "devices": [
            {"address": f"0000:3b:00.{n}", "type": "gpu", "vendor": "nvidia", "model": "tesla-t4"}
            for n in range(count)
        ]
    }


def labelled(obj: Object, **labels: str) -> Object:
    obj["spec"]["template"]["metadata"] = {"labels": labels}
    return obj


def rule(kind: str, app: str, **more: Any) -> Object:
    return {kind: {REQUIRED: [{"labelSelector": {"matchLabels": {"app": app}}, **more}]}}


def explained(stage: Stage, *arguments: str) -> str:
    kubeconfig = stage.operator.plane.kubeconfig
    command = (sys.executable, "-m", "novacron.app.entry", "explain", "vm", *arguments)
    options = ("-n", stage.namespace, "--kubeconfig", str(kubeconfig))
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=True)
    return done.stdout


def test_the_example_goes_where_it_says_and_its_likes_go_elsewhere(stage: Stage) -> None:
    """Two hosts of the right type, one of them better: the third machine waits and says why."""
    marks = {"node.novacron.io/type": "compute"}
    stage.add_host()
    better = stage.add_host(
        labels={**marks, "topology.kubernetes.io/zone": "a"},
        taints=[{"key": "team", "value": "web", "effect": "NoSchedule"}],
    )
    other = stage.add_host(labels=marks)
    example = yaml.safe_load(EXAMPLE.read_text())
    example["metadata"]["namespace"] = stage.namespace
    for name, host in (("web-1", better), ("web-2", other)):
        example["metadata"]["name"] = name
        stage.api.create(example)
        running = stage.until_running(name)
        assert running["status"]["nodeName"] == host
        placed = condition(running, "Placed")
        assert (placed["status"], placed["reason"]) == ("True", "HostChosen")
        assert f"{host} is best with" in placed["message"]
    example["metadata"]["name"] = "web-3"
    stage.api.create(example)
    waiting = stage.until("web-3", lambda obj: bool(condition(obj, "Placed")))
    # Other tests may have hosts of their own.
    message = condition(waiting, "Placed")["message"]
    assert "2 have machines with app=web, which it must be apart from" in message
    assert "1 lacks label node.novacron.io/type=compute" in message
    said = explained(stage, "web-3")
    assert re.match(r"web-3 is on no host\nnow: 0/\d+ hosts fit: ", said)
    assert "PodAntiAffinity: has machines with app=web, which it must be apart from" in said
    page = explained(stage, "web-1").splitlines()
    chosen = condition(stage.api.machine(stage.namespace, "web-1") or {}, "Placed")["message"]
    assert page[:2] == [f"web-1 is on host {better}", f"when it was placed: {chosen}"]
    assert re.match(rf"if it were placed now: 1/\d+ hosts fit: {better} is best with", page[2])
    assert re.search(rf"^{better} +yes +\d\.\d\d +.*NodeAffinity 1\.00", "\n".join(page), re.M)
    account = json.loads(explained(stage, "web-1", "-o", "json"))
    assert account["host"] == better
    assert [each["fits"] for each in account["hosts"]][:2] == [True, False]
    assert account["hosts"][0]["scores"]["NodeAffinity"] == 1.0
    stage.api.delete_machine(stage.namespace, "web-2")
    assert stage.until_running("web-3")["status"]["nodeName"] == other


def test_a_machine_waits_for_the_one_it_must_be_near_to(stage: Stage) -> None:
    """It is placed when that one has come, without anybody touching it."""
    stage.add_host(cpu=1000)
    stage.add_host(cpu=1000)
    near = virtual_machine("near", stage.namespace, affinity=rule("podAffinity", "db"))
    stage.api.create(near)
    waiting = stage.until("near", lambda obj: bool(condition(obj, "Placed")))
    assert "2 have no machines with app=db" in condition(waiting, "Placed")["message"]
    stage.api.create(labelled(virtual_machine("db", stage.namespace), app="db"))
    host = stage.until_running("db")["status"]["nodeName"]
    assert stage.until_running("near")["status"]["nodeName"] == host


def test_rules_reach_into_namespaces_by_their_labels(stage: Stage) -> None:
    """A namespace that is labelled later counts from then on."""
    host = stage.add_host()
    mark = uuid4().hex[:8]
    selector = {"namespaceSelector": {"matchLabels": {"mark": mark}}}
    stage.api.create(labelled(virtual_machine("db", stage.namespace, on=host), app="db"))
    stage.until_running("db")
    affinity = rule("podAffinity", "db", **selector)
    stage.api.create(virtual_machine("near", stage.namespace, affinity=affinity))
    stage.until("near", lambda obj: "app=db" in condition(obj, "Placed").get("message", ""))
    labels = {"metadata": {"labels": {"mark": mark}}}
    stage.api.call("PATCH", f"/api/v1/namespaces/{stage.namespace}", labels, merge=True)
    assert stage.until_running("near")["status"]["nodeName"] == host


def test_the_example_with_a_gpu_waits_for_a_host_that_has_one(stage: Stage) -> None:
    """Until then it says what is missing; then the device is its own."""
    stage.add_host()
    example = yaml.safe_load((EXAMPLE.parent / "31-devices.yaml").read_text())
    example["metadata"]["namespace"] = stage.namespace
    stage.api.create(example)
    missing = "(needs 1 gpu nvidia tesla-t4, has none)"
    waiting = stage.until(
        "trainer", lambda obj: missing in condition(obj, "Placed").get("message", "")
    )
    assert waiting["status"]["phase"] == "Pending"
    host = stage.add_host(simulation=gpus(1))
    running = stage.until_running("trainer")
    assert running["status"]["nodeName"] == host
    assert [each["address"] for each in running["status"]["devices"]] == ["0000:3b:00.0"]


def test_devices_are_reserved_handed_over_and_given_back(stage: Stage) -> None:
    """Two GPUs, three machines; the third one gets what the first one had."""
    host = stage.add_host(simulation=gpus(2))
    wanted = [{"type": "gpu", "vendor": "nvidia", "model": "tesla-t4", "count": 1}]
    for number in (1, 2):
        stage.api.create(virtual_machine(f"vm-{number}", stage.namespace, devices=wanted))
    given = {}
    for number in (1, 2):
        running = stage.until_running(f"vm-{number}")
        (device,) = running["status"]["devices"]
        given[host, device["address"]] = running["metadata"]["uid"]
    with stage.world() as world:
        assert world.devices() == given
    stage.api.create(virtual_machine("vm-3", stage.namespace, devices=wanted))
    waiting = stage.until("vm-3", lambda obj: bool(condition(obj, "Placed")))
    missing = "1 lacks devices (needs 1 gpu nvidia tesla-t4, has 2, none of them free)"
    assert missing in condition(waiting, "Placed")["message"]
    freed = stage.api.machine(stage.namespace, "vm-1")["status"]["devices"]
    stage.api.delete_machine(stage.namespace, "vm-1")
    assert stage.until_running("vm-3")["status"]["devices"] == freed


def test_devices_stay_as_they_are_once_a_machine_has_a_host(stage: Stage) -> None:
    """One that waits may still think better of it."""
    stage.add_host(simulation=gpus(1))
    stage.api.create(virtual_machine("vm", stage.namespace, devices=[{"type": "fpga"}]))
    stage.until("vm", lambda obj: bool(condition(obj, "Placed")))
    change = {"spec": {"template": {"spec": {"devices": [{"type": "gpu"}]}}}}
    stage.api.patch_machine(stage.namespace, "vm", change)
    stage.until_running("vm")
    change["spec"]["template"]["spec"]["devices"] = []
    with pytest.raises(Refused, match="devices cannot change once the machine has a host"):
        stage.api.patch_machine(stage.namespace, "vm", change)
