"""Records in annotations: only our own word counts, and only for what it was given."""

import json
from dataclasses import replace
from typing import Any

import pytest

from machines import virtual_machine
from novacron.core.devices import HostDevice
from novacron.core.machine import Resources
from novacron.core.move import Move, MoveReport, MoveResult
from novacron.core.placement import Placement
from novacron.core.report import MachineReport, Phase
from novacron.families.move_record import MOVE, move_of, with_move, written_move
from novacron.families.novacron.placement_record import PLACEMENT
from novacron.families.novacron.translate import VirtualMachineKind
from novacron.families.seal import UNCHECKED, Seal

Object = dict[str, Any]

OURS = Seal(b"k" * 32)
KIND = VirtualMachineKind(OURS)
DISKS = HostDevice("0000:00:1f.2", "storage", "intel", "sata", 0)
PLACED = Placement("a", Resources(1, 512, 1024))
FORGERS = [UNCHECKED, Seal(b"x" * 32)]


def stored(**status: Any) -> Object:
    body = virtual_machine("vm", "here")
    body["metadata"] |= {"uid": "u-1", "generation": 1}
    return body | {"status": status}


def said(obj: Object, refused: str | None = None) -> Object:
    """Return the object as it is when it was written that its machine is nowhere."""
    hosts = frozenset({refused} if refused else ())
    report = MachineReport(Phase.PENDING, None, None, hosts, None, ())
    status = KIND.status(obj, KIND.machine(obj), report)
    kept = {name: value for name, value in status.items() if value is not None}
    return {**obj, "status": kept}


def tampered(obj: Object, annotation: str, **changed: Any) -> Object:
    """Return the object with another record, its seal as it was."""
    notes = obj["metadata"]["annotations"]
    record = json.loads(notes[annotation]) | changed
    notes = {**notes, annotation: json.dumps(record, sort_keys=True)}
    return {**obj, "metadata": {**obj["metadata"], "annotations": notes}}


def test_what_we_sealed_is_read_as_it_was() -> None:
    """By every operator that has the key."""
    obj = KIND.placed(stored(), replace(PLACED, devices=(DISKS,)))
    again = VirtualMachineKind(Seal(OURS.key)).machine(obj)
    assert (again.host, again.devices) == ("a", (DISKS,))


@pytest.mark.parametrize("forger", FORGERS)
def test_a_placement_that_somebody_else_wrote_is_none(forger: Seal) -> None:
    """Whoever may edit a machine could else have any device of any host."""
    forged = VirtualMachineKind(forger).placed(stored(), replace(PLACED, devices=(DISKS,)))
    assert KIND.machine(forged).host is None
    assert KIND.holding(forged) is None


def test_a_placement_that_somebody_wrote_into_is_none() -> None:
    """One word of it is enough."""
    obj = KIND.placed(stored(), PLACED)
    assert KIND.machine(tampered(obj, PLACEMENT)).host == "a"
    assert KIND.machine(tampered(obj, PLACEMENT, host="b")).host is None


def test_a_placement_from_before_a_refusal_does_not_count_again() -> None:
    """Somebody may have kept it; its room was given to others since, and its devices."""
    first = KIND.placed(stored(), replace(PLACED, devices=(DISKS,)))
    waiting = said(said(first, refused="a"))
    assert "refusedHosts" not in waiting["status"]
    assert KIND.machine(waiting).host is None
    assert KIND.holding(waiting) is None
    again = KIND.placed(waiting, PLACED)
    assert KIND.machine(again).host == "a"
    waiting = said(said(again, refused="a"))
    assert KIND.machine(waiting).host is None


def test_a_placement_from_before_a_move_does_not_count_when_the_machine_loses_its_host() -> None:
    """The host that it was on first did not refuse it, and promised it nothing since."""
    first = KIND.placed(stored(), PLACED)
    moved = KIND.placed(stored(nodeName="b"), replace(PLACED, host="b"))
    kept = {**said(moved, refused="b"), "metadata": first["metadata"]}
    assert KIND.machine(kept).host is None
    assert KIND.holding(kept) is None


def test_a_placement_from_when_refusals_were_not_counted_counts() -> None:
    """A machine that was placed before an upgrade is made where it was placed."""
    amounts = {"cpu": 1, "memory": "512Mi", "disk": "1Gi"}
    text = OURS.closed("placement", {"uid": "u-1", "host": "a", **amounts})
    obj = stored(refusedHosts=["b"])
    obj["metadata"]["annotations"] = {PLACEMENT: text}
    assert KIND.machine(obj).host == "a"


@pytest.mark.parametrize("forger", FORGERS)
def test_a_move_that_somebody_else_wrote_is_taken_away(forger: Seal) -> None:
    """And goes on for nobody."""
    forged = with_move(stored(), Move("7", "a", "b", live=False, lost=True), forger)
    assert move_of(forged, OURS) == (None, True)


def test_one_record_does_not_pass_for_another() -> None:
    """A seal says what it was given for."""
    obj = KIND.moving(stored(), PLACED, Move("7", "a", "b"))
    notes = obj["metadata"]["annotations"]
    notes[MOVE], notes[PLACEMENT] = notes[PLACEMENT], notes[MOVE]
    assert KIND.machine(obj).host is None
    assert KIND.machine(obj).move is None


@pytest.mark.parametrize("since", ["9", None])
def test_a_move_that_is_over_does_not_begin_again(since: str | None) -> None:
    """Somebody may have kept its record, and put it back when the machine had moved on."""
    first = Move("7", "a", "b", devices=(DISKS,))
    before = {"id": "5", "progress": 0, "result": "Succeeded"}
    obj = with_move(stored(migration=before), first, OURS)
    assert move_of(obj, OURS) == (first, False)
    later = MoveReport(since or "", "b", "c", result=MoveResult.SUCCEEDED)
    obj = {**obj, "status": {"migration": written_move(later)}}
    assert move_of(obj, OURS) == (None, True)


def nested(levels: int) -> str:
    return '{"seal": "x", "a": ' + "[" * levels + "]" * levels + "}"


@pytest.mark.parametrize("text", ["", "no JSON", "[]", "{}", '{"seal": 7}', '{"seal": "\\u00e9"}'])
def test_a_text_that_is_no_record_is_none(text: str) -> None:
    """Whatever it is."""
    assert OURS.opened("placement", text) is None


@pytest.mark.parametrize("levels", [100, 300, 1000, 100_000])
def test_a_text_that_is_nested_deeply_is_no_record(levels: int) -> None:
    """Some can be read and not written again; whoever wrote it must not end the operator by it."""
    obj = stored()
    obj["metadata"]["annotations"] = {PLACEMENT: nested(levels), MOVE: nested(levels)}
    assert KIND.holding(obj) is None
    assert KIND.booking(obj) is None
    assert KIND.machine(obj).host is None


def test_a_text_longer_than_any_record_is_none() -> None:
    """Those that were read are kept for a while, and there may be many."""
    assert OURS.opened("placement", OURS.closed("placement", {"a": "x" * 30_000})) is not None
    assert OURS.opened("placement", OURS.closed("placement", {"a": "x" * 40_000})) is None


def test_nobody_reads_the_key_where_the_seal_is_shown() -> None:
    """Values end up in logs."""
    assert "kkk" not in repr(Seal(b"k" * 32))
