"""The record of a move: written by us, and lost or spoilt by anybody."""

import json
from typing import Any

import pytest

from machines import virtual_machine
from novacron.core.devices import HostDevice
from novacron.core.machine import Resources
from novacron.core.move import Move, MoveReport, MoveResult
from novacron.core.placement import Placement
from novacron.families.move_record import (
    MIGRATE_CANCEL,
    MIGRATE_TO,
    MOVE,
    STOP_ALLOWED,
    move_of,
    recorded_again,
    with_move,
    without_move,
    written_move,
)
from novacron.families.novacron.translate import VirtualMachineKind
from novacron.families.seal import Seal

Object = dict[str, Any]

GPU = HostDevice("0000:3b:00.0", "gpu", "nvidia", "tesla-t4", 0)
MOVES = [
    Move("7", "a", "b"),
    Move("7", "a", "b", live=False, devices=(GPU,)),
    Move("7", "a", "b", live=False, lost=True),
]


def machine(move: Move | None = None, *, begun: Move | None = None, **report: Any) -> Object:
    """Return an object with a record, and a status that tells of a move."""
    obj: Object = {"metadata": {"uid": "u-1", "name": "vm"}}
    if move is not None:
        obj = with_move(obj, move)
    if begun is not None:
        fields = {"mode": begun.mode, "devices": begun.devices, **report}
        told = MoveReport(begun.id, begun.source, begun.target, **fields)
        obj["status"] = {"migration": written_move(told)}
    return obj


@pytest.mark.parametrize("move", MOVES)
def test_a_record_is_read_as_it_was_written(move: Move) -> None:
    """Whether anything has begun or not."""
    assert move_of(machine(move)) == (move, False)
    assert move_of(machine(move, begun=move)) == (move, False)


@pytest.mark.parametrize("move", MOVES)
def test_a_move_that_has_begun_is_known_without_its_record(move: Move) -> None:
    """Somebody replaced the object, or wrote into the record."""
    assert move_of(machine(begun=move)) == (move, False)
    spoilt = machine(move, begun=move)
    spoilt["metadata"]["annotations"][MOVE] = "{"
    assert move_of(spoilt) == (move, False)


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("result", list(MoveResult))
def test_a_move_that_has_ended_goes_on_for_nobody(move: Move, result: MoveResult) -> None:
    """Its record is to be taken away, if it is still there."""
    assert move_of(machine(move, begun=move, result=result)) == (None, True)
    assert move_of(machine(begun=move, result=result)) == (None, False)


def test_a_move_that_others_ordered_is_not_ours() -> None:
    """Nobody placed it, so its status does not say how it gets there."""
    assert move_of(machine(begun=MOVES[0], mode=None)) == (None, False)


def test_a_copy_of_another_objects_record_is_to_be_taken_away() -> None:
    """As kubectl get and apply under another name make it."""
    copied = machine(MOVES[0])
    copied["metadata"]["uid"] = "u-2"
    assert move_of(copied) == (None, True)


def test_what_a_later_version_added_to_a_record_is_left_out() -> None:
    """Going back to an earlier version amid a move loses no machine."""
    later = machine(MOVES[0])
    record = json.loads(later["metadata"]["annotations"][MOVE]) | {"lane": "fast"}
    later["metadata"]["annotations"][MOVE] = json.dumps(record)
    assert move_of(later) == (MOVES[0], False)


def test_a_status_in_words_of_a_later_version_hides_no_record() -> None:
    """And by itself it tells of no move that anybody here could go on with."""
    later = machine(MOVES[0], begun=MOVES[0])
    later["status"]["migration"]["mode"] = "Teleported"
    assert move_of(later) == (MOVES[0], False)
    del later["metadata"]["annotations"]
    assert move_of(later) == (None, False)


def asked_amid(to: str, result: MoveResult) -> Object:
    """Return a machine that was on its way from a to b when somebody asked for something else."""
    obj = machine(MOVES[0], begun=MOVES[0], result=result)
    words = {MIGRATE_TO: to, STOP_ALLOWED: "true", MIGRATE_CANCEL: "true"}
    obj["metadata"]["annotations"] |= words
    return obj


@pytest.mark.parametrize(
    ("to", "result"),
    [("c", MoveResult.SUCCEEDED), ("a", MoveResult.SUCCEEDED), ("any", MoveResult.CANCELLED)],
)
def test_what_was_asked_for_amid_a_move_is_still_asked_when_it_is_over(
    to: str, result: MoveResult
) -> None:
    """Only the record goes, and the cancellation, which was of that move."""
    left = without_move(asked_amid(to, result))
    assert left["metadata"]["annotations"] == {MIGRATE_TO: to, STOP_ALLOWED: "true"}


@pytest.mark.parametrize("to", ["b", " b ", "any", ""])
def test_a_request_that_the_move_under_way_has_met_is_answered_by_it(to: str) -> None:
    """It is elsewhere than when it was asked, or where it was asked to: it moves no second time."""
    left = without_move(asked_amid(to, MoveResult.SUCCEEDED))
    assert left["metadata"]["annotations"] == {}


def test_a_request_that_no_move_stands_for_is_taken_away_with_its_cancellation() -> None:
    """It was answered without one."""
    obj = machine(begun=MOVES[0], result=MoveResult.SUCCEEDED)
    obj["metadata"]["annotations"] = {MIGRATE_TO: "c", MIGRATE_CANCEL: "true", "other": "stays"}
    assert without_move(obj)["metadata"]["annotations"] == {"other": "stays"}


def test_a_decision_takes_the_place_of_all_that_was_asked_for() -> None:
    """Also of what is left of the move before."""
    obj = asked_amid("c", MoveResult.SUCCEEDED)
    assert list(with_move(obj, Move("8", "b", "c"))["metadata"]["annotations"]) == [MOVE]


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("spoilt", [True, False])
def test_a_record_that_somebody_took_away_amid_a_move_is_written_anew_from_the_status(
    move: Move, *, spoilt: bool
) -> None:
    """With all that was asked for meanwhile; and it is over when the move is."""
    obj = machine(begun=move)
    asked = {MIGRATE_TO: "c", MIGRATE_CANCEL: "true"}
    obj["metadata"]["annotations"] = asked | ({MOVE: "{"} if spoilt else {})
    again = recorded_again(obj)
    assert again["metadata"]["annotations"].items() > asked.items()
    del again["status"]["migration"]["mode"]  # so that the record tells, and not the status
    assert move_of(again) == (move, False)
    again["status"] = machine(begun=move, result=MoveResult.CANCELLED)["status"]
    assert move_of(again) == (None, True)
    assert without_move(again)["metadata"]["annotations"] == {MIGRATE_TO: "c"}


@pytest.mark.parametrize(
    "obj",
    [
        machine(),
        machine(MOVES[0]),
        machine(MOVES[0], begun=MOVES[0]),
        machine(begun=MOVES[0], result=MoveResult.SUCCEEDED),
        machine(begun=MOVES[0], mode=None),
        machine(begun=Move("", "a", "b")),
    ],
)
def test_nothing_is_written_of_a_move_that_is_on_record_or_of_none(obj: Object) -> None:
    """Nobody writes what is there."""
    assert recorded_again(obj) is obj


@pytest.mark.parametrize("when", ["never", "amid", "unknown"])
def test_what_its_owner_wants_since_a_move_began_is_looked_at_when_it_is_over(when: str) -> None:
    """The record of where it is says what was wanted when that was decided."""
    kind, placed = VirtualMachineKind(Seal(b"k" * 32)), Placement("b", Resources(1, 512, 1024))
    obj = virtual_machine("vm", "here") | {"status": {"nodeName": "b"}}
    obj["metadata"] |= {"uid": "u-1", "generation": 1, "resourceVersion": "7"}
    obj = kind.moving(obj, placed, Move("7", "a", "b"))
    if when == "amid":
        template = obj["spec"]["template"]
        selected = {**template["spec"], "nodeSelector": {"rack": "1"}}
        obj["spec"]["template"] = {**template, "spec": selected}
    if when == "unknown":
        obj["metadata"]["annotations"].pop("novacron.io/placement")
    for _ in range(2):
        obj = kind.moved(obj, placed)
        assert MOVE not in obj["metadata"]["annotations"]
        assert kind.asks_to_move(obj) is (when != "never")
    assert not kind.asks_to_move(kind.moving(obj, placed, None))
