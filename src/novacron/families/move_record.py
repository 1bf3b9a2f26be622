"""How a machine is asked to move, how the decision is recorded, and how it went.

For machines of every family: the request and the record of a decision are annotations, so that
one write turns the one into the other; how the move goes is in the status. The record is sealed.
Whoever replaces an object takes its annotations away, so that a move which has begun is known by
the status alone.
"""

from dataclasses import fields
from typing import Any

from novacron.core.move import (
    Move,
    MoveMode,
    MoveProgress,
    MoveReport,
    MoveRequest,
    MoveResult,
)
from novacron.families.device_record import devices_of, written_devices
from novacron.families.seal import UNCHECKED, Seal
from novacron.families.wording import time_of, written_time

__all__ = [
    "ANYWHERE",
    "MIGRATE_CANCEL",
    "MIGRATE_TO",
    "STOP_ALLOWED",
    "last_move",
    "move_of",
    "recorded_again",
    "request_of",
    "with_move",
    "without_move",
    "written_move",
]

Object = dict[str, Any]

# Asked for by anybody: where to, or any; and whether the machine may be stopped for it.
MIGRATE_TO = "novacron.io/migrate-to"
STOP_ALLOWED = "novacron.io/migrate-stop-allowed"
MIGRATE_CANCEL = "novacron.io/migrate-cancel"
ANYWHERE = "any"
# The decision, written before anything is done: where a machine moves to.
MOVE = "novacron.io/move"
PURPOSE = "move"
RECORDED = frozenset(each.name for each in fields(Move))


def request_of(obj: Object) -> MoveRequest | None:
    """Return the request that is not decided on yet."""
    annotations = obj["metadata"].get("annotations") or {}
    to = annotations.get(MIGRATE_TO)
    if to is None:
        return None
    return MoveRequest(
        None if to.strip() in ("", ANYWHERE) else to.strip(),
        stop_allowed=annotations.get(STOP_ALLOWED) == "true",
    )


def move_of(obj: Object, seal: Seal = UNCHECKED) -> tuple[Move | None, bool]:
    """Return the move under way, and whether the record of one that has ended is still there.

    A copy of another object's record is not ours, and one that somebody else wrote is none.
    """
    text = (obj["metadata"].get("annotations") or {}).get(MOVE)
    written = (obj.get("status") or {}).get("migration") or {}
    move = _recorded(text, obj["metadata"]["uid"], written.get("id"), seal) if text else None
    if move is None:
        begun = _begun(written)
        return begun, bool(text) and begun is None
    ended = written.get("id") == move.id and written.get("result") is not None
    return (None, True) if ended else (move, False)


def _recorded(text: str, uid: str, last: str | None, seal: Seal) -> Move | None:
    """Return the move that an annotation tells of; what a later version added is left out.

    One that was kept and put back after ``last``, a later move, is over.
    """
    record = seal.opened(PURPOSE, text)
    if record is None or record.get("uid") != uid:
        return None
    if last not in (record.get("id"), record.get("after")):
        return None
    try:
        known = {name: value for name, value in record.items() if name in RECORDED}
        return Move(**known | {"devices": devices_of(record.get("devices"))})
    except (AttributeError, KeyError, TypeError):
        return None


def _begun(written: Object) -> Move | None:
    """Return the move that a status tells of, if it goes on in a way that is known here."""
    mode = written.get("mode")
    if mode not in list(MoveMode) or written.get("result") is not None:
        return None
    return Move(
        written.get("id") or "",
        written.get("sourceNode") or "",
        written.get("targetNode") or "",
        live=mode == MoveMode.LIVE,
        lost=mode == MoveMode.ANEW,
        devices=devices_of(written.get("devices")),
    )


def with_move(obj: Object, move: Move, seal: Seal = UNCHECKED) -> Object:
    """Return the object with the placer's word in place of the request."""
    asked = dict.fromkeys((MIGRATE_TO, STOP_ALLOWED, MIGRATE_CANCEL))
    return _annotated(obj, asked | {MOVE: _record(obj, move, seal)})


def recorded_again(obj: Object, seal: Seal = UNCHECKED) -> Object:
    """Return the object with the record of a move that only its status tells of, if there is one.

    All that was asked for since stays.
    """
    text = (obj["metadata"].get("annotations") or {}).get(MOVE)
    written = (obj.get("status") or {}).get("migration") or {}
    begun = _begun(written)
    if begun is None or not begun.id:
        return obj
    if text and _recorded(text, obj["metadata"]["uid"], begun.id, seal) is not None:
        return obj
    return _annotated(obj, {MOVE: _record(obj, begun, seal)})


def _record(obj: Object, move: Move, seal: Seal) -> str:
    """Return the annotation that tells of a move."""
    before = (obj.get("status") or {}).get("migration") or {}
    record: Object = {
        "uid": obj["metadata"]["uid"],
        "id": move.id,
        "after": before.get("id"),
        "source": move.source,
        "target": move.target,
        "live": move.live,
        "lost": move.lost,
        "why": move.why,
    }
    if move.devices:
        record["devices"] = written_devices(move.devices)
    return seal.closed(PURPOSE, record)


def without_move(obj: Object) -> Object:
    """Return the object without what was answered, which may be cancelled too.

    Where there is a record that is the move which is over: what was asked for meanwhile is still
    to be answered, unless the move has met it. Where there is none it is the request.
    """
    answered = [MOVE, MIGRATE_CANCEL]
    if MOVE not in (obj["metadata"].get("annotations") or {}) or _is_met(obj):
        answered += [MIGRATE_TO, STOP_ALLOWED]
    return _annotated(obj, dict.fromkeys(answered))


def _is_met(obj: Object) -> bool:
    """Say whether the machine has just come to where it was asked to meanwhile, if it was."""
    request, written = request_of(obj), (obj.get("status") or {}).get("migration") or {}
    came = written.get("result") == MoveResult.SUCCEEDED
    return request is None or (came and request.to in (None, written.get("targetNode")))


def _annotated(obj: Object, changes: dict[str, str | None]) -> Object:
    metadata = obj["metadata"]
    annotations = {**(metadata.get("annotations") or {}), **changes}
    kept = {name: text for name, text in annotations.items() if text is not None}
    return {**obj, "metadata": {**metadata, "annotations": kept}}


def last_move(status: Object) -> MoveReport | None:
    """Return what was last written of a move."""
    written = status.get("migration")
    if not written:
        return None
    result, mode = written.get("result"), written.get("mode")
    return MoveReport(
        id=written.get("id") or "",
        source=written.get("sourceNode"),
        target=written.get("targetNode"),
        started=time_of(written.get("startTime")),
        ended=time_of(written.get("endTime")),
        progress=MoveProgress(
            written.get("progress") or 0,
            written.get("transferredBytes"),
            written.get("downtimeMilliseconds"),
        ),
        result=MoveResult(result) if result else None,
        reason=written.get("reason") or "",
        message=written.get("message") or "",
        mode=MoveMode(mode) if mode else None,
        devices=devices_of(written.get("devices")),
    )


def written_move(move: MoveReport) -> Object:
    """Return a move as a status has it."""
    entries: Object = {
        "id": move.id or None,
        "sourceNode": move.source,
        "targetNode": move.target,
        "startTime": written_time(move.started),
        "endTime": written_time(move.ended),
        "progress": move.progress.percent,
        "transferredBytes": move.progress.transferred_bytes,
        "downtimeMilliseconds": move.progress.downtime_ms,
        "result": move.result.value if move.result else None,
        "reason": move.reason or None,
        "message": move.message or None,
        "mode": move.mode.value if move.mode else None,
        "devices": written_devices(move.devices) or None,
    }
    return {name: value for name, value in entries.items() if value is not None}
