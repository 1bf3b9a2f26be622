"""Tables for people, JSON and YAML for programs, colours only where somebody sees them."""

import datetime as dt
import json

import pytest
import yaml

from novacron.cli.describe import description
from novacron.cli.kinds import HOST_COLUMNS, MACHINE_COLUMNS, OUT_OF_SERVICE
from novacron.cli.options import Format
from novacron.cli.output import age, coloured, show_list, show_object, table

NOW = dt.datetime(2030, 1, 10, 12, 0, 0, tzinfo=dt.UTC)
MACHINE = {
    "apiVersion": "novacron.io/v1alpha1",
    "kind": "VirtualMachine",
    "metadata": {
        "name": "web",
        "namespace": "shop",
        "uid": "u",
        "creationTimestamp": "2030-01-01T00:00:00Z",
        "managedFields": [{"manager": "noise"}],
    },
    "spec": {
        "running": True,
        "template": {
            "spec": {
                "resources": {"cpu": 2, "memory": "1Gi"},
                "image": {"source": "builtin://tiny"},
            }
        },
    },
    "status": {
        "phase": "Running",
        "nodeName": "local",
        "ipAddresses": ["10.0.0.5", "fd00::5"],
        "vmID": "sim-1",
        "conditions": [
            {"type": "Ready", "status": "True", "reason": "VMReady", "message": "all is well"}
        ],
    },
}
NEW = {"metadata": {"name": "new", "namespace": "shop"}, "spec": {"running": False}}
EVENT = {"type": "Normal", "reason": "Started", "message": "started", "count": 3}


@pytest.mark.parametrize(
    ("moment", "shown"),
    [
        (None, ""),
        ("2030-01-10T12:00:05Z", "0s"),
        ("2030-01-10T11:59:01Z", "59s"),
        ("2030-01-10T11:58:01Z", "119s"),
        ("2030-01-10T11:58:00Z", "2m"),
        ("2030-01-10T10:00:00Z", "2h"),
        ("2030-01-08T12:00:00Z", "2d"),
        ("2030-01-10T11:59:01.123456Z", "58s"),
    ],
)
def test_an_age_has_one_unit_that_says_something(moment, shown):
    """A clock that runs behind must not show negative ages."""
    assert age(moment, NOW) == shown


def test_columns_are_aligned_and_never_empty():
    """awk and cut count columns."""
    lines = table(("NAME", "PHASE", "IP"), [("a", None, "x"), ("longer", "Running", "")])
    assert lines.splitlines() == [
        "NAME     PHASE     IP",
        "a        -         x",
        "longer   Running   -",
    ]


def test_machines_and_hosts_without_a_status_can_be_shown(capsys):
    """The operator may not have looked at them yet."""
    show_list(Format.TABLE, [MACHINE, NEW], MACHINE_COLUMNS)
    show_object(Format.TABLE, {"metadata": {"name": "h"}, "spec": {}}, HOST_COLUMNS)
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].split() == ["NAME", "PHASE", "NODE", "IP", "AGE"]
    assert shown[1].split()[:4] == ["web", "Running", "local", "10.0.0.5"]
    assert shown[2].split() == ["new", "-", "-", "-", "-"]
    assert shown[4].split() == ["h", "-", "Unknown", "-", "-", "-", "-"]


READY = {"conditions": [{"type": "Ready", "status": "True"}]}
FENCE = [{"key": "other", "effect": "NoSchedule"}, {"key": OUT_OF_SERVICE, "effect": "NoExecute"}]


@pytest.mark.parametrize(
    ("spec", "status", "shown"),
    [
        ({}, READY, "Ready"),
        ({"unschedulable": True}, READY, "Ready,Unschedulable"),
        ({"unschedulable": True, "drain": {}}, READY, "Ready,Draining"),
        ({"taints": FENCE[:1]}, READY, "Ready"),
        ({"taints": FENCE}, READY, "Ready,Fenced"),
        ({"drain": {}}, {"node": {"taints": FENCE}}, "Unknown,Draining,Fenced"),
    ],
)
def test_a_host_tells_all_that_somebody_has_said_of_it(capsys, spec, status, shown):
    """Also that it is off, when it is back: the next time it is silent nobody is asked."""
    item = {"metadata": {"name": "h"}, "spec": spec, "status": status}
    show_object(Format.TABLE, item, HOST_COLUMNS)
    assert capsys.readouterr().out.splitlines()[1].split()[2] == shown


def test_an_empty_list_is_said_beside_the_output(capsys):
    """A script that reads the output must not take the sentence for a machine."""
    show_list(Format.TABLE, [], MACHINE_COLUMNS)
    assert capsys.readouterr() == ("", "none found\n")


def test_programs_get_whole_objects_without_noise(capsys):
    """The same List that kubectl prints, so the same tools read it."""
    show_list(Format.JSON, [MACHINE], MACHINE_COLUMNS)
    shown = json.loads(capsys.readouterr().out)
    assert shown["kind"] == "List"
    assert shown["items"][0]["spec"] == MACHINE["spec"]
    assert "managedFields" not in shown["items"][0]["metadata"]
    show_object(Format.YAML, MACHINE, MACHINE_COLUMNS)
    assert yaml.safe_load(capsys.readouterr().out)["status"] == MACHINE["status"]


def test_there_are_no_colours_in_a_pipe():
    """Escape codes in a file help nobody."""
    assert not coloured()


def test_a_description_says_what_a_person_asks():
    """Where is it, is it well, what happened."""
    page = description(MACHINE, [EVENT])
    for expected in ("web", "shop", "Running", "local", "10.0.0.5, fd00::5", "builtin://tiny"):
        assert expected in page
    assert "Ready   True     VMReady" in page
    assert "Started   3       started" in page


def test_a_machine_nobody_looked_at_can_be_described():
    """No status, no conditions, no events."""
    page = description(NEW, [])
    assert "Phase       -" in page
    assert page.endswith("Events  none")
