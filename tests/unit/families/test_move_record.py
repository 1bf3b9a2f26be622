"""The record of a move: written by us, and lost or spoilt by anybody."""

import json
from typing import Any

import pytest

from novacron.core.devices import HostDevice
from novacron.core.move import Move, MoveReport, MoveResult
from novacron.families.move_record import MOVE, move_of, with_move, written_move

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
