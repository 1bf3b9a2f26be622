"""What a VirtualMachine says about snapshots, in the core's words, and back."""

from collections.abc import Mapping
from typing import Any

from novacron.core.schedule import Schedule
from novacron.core.snapshot import (
    NO_WISHES,
    Kept,
    Restored,
    RestoreOrder,
    SnapshotOrder,
    SnapshotPolicy,
    SnapshotReport,
    SnapshotWishes,
)
from novacron.families.wording import time_of, written_time

__all__ = ["wishes_of", "written_snapshots"]

Object = dict[str, Any]

SPOKEN_OF = ("snapshotPolicy", "snapshots", "restore")
RECORDED = ("snapshots", "restore", "snapshotSchedule")


def wishes_of(spec: Mapping[str, Any], status: Mapping[str, Any]) -> SnapshotWishes:
    """Return what is wanted about snapshots and what is on record of them."""
    if not any(spec.get(name) for name in SPOKEN_OF) and not any(
        status.get(name) for name in RECORDED
    ):
        return NO_WISHES
    policy = spec.get("snapshotPolicy") or {}
    requests = spec.get("snapshots") or ()
    followed = status.get("snapshotSchedule") or {}
    return SnapshotWishes(
        policy=_policy(policy) if policy.get("schedule") else None,
        wanted=tuple(
            SnapshotOrder(each["name"], bool(each.get("memory")))
            for each in requests
            if not each.get("discard")
        ),
        unwanted=frozenset(each["name"] for each in requests if each.get("discard")),
        restore=_order(spec.get("restore")),
        protect=policy.get("onDelete") == "Protect",
        kept=tuple(_kept(each) for each in status.get("snapshots") or ()),
        restored=_restored(status.get("restore")),
        followed=followed.get("schedule", ""),
        since=time_of(followed.get("since")),
        next_run=time_of(followed.get("nextTime")),
    )


def written_snapshots(report: SnapshotReport) -> Object:
    """Return the parts of a status that are about snapshots; None where there is nothing."""
    return {
        "snapshots": [_written(each) for each in report.kept] or None,
        "restore": _written_restore(report.restored) if report.restored else None,
        "snapshotSchedule": _said(
            {
                "schedule": report.followed,
                "since": written_time(report.since),
                "nextTime": written_time(report.next_run),
            }
        )
        if report.followed
        else None,
    }


def _policy(policy: Mapping[str, Any]) -> SnapshotPolicy:
    schedule = Schedule(policy["schedule"], policy.get("timeZone") or "UTC")
    return SnapshotPolicy(schedule, policy.get("retention", 7), bool(policy.get("memory")))


def _order(restore: Mapping[str, Any] | None) -> RestoreOrder | None:
    return RestoreOrder(restore["snapshot"], restore["request"]) if restore else None


def _kept(entry: Mapping[str, Any]) -> Kept:
    return Kept(
        name=entry["name"],
        created=time_of(entry.get("createdAt")),
        size=entry.get("size"),
        memory=bool(entry.get("memory")),
        quiesced=bool(entry.get("quiesced")),
        lost=bool(entry.get("lost")),
    )


def _restored(entry: Mapping[str, Any] | None) -> Restored | None:
    if not entry:
        return None
    return Restored(
        snapshot=entry["snapshot"],
        request=entry["request"],
        succeeded=entry["succeeded"],
        message=entry.get("message", ""),
        at=time_of(entry.get("completedAt")),
        reason=entry.get("reason", ""),
    )


def _written(kept: Kept) -> Object:
    return _said(
        {
            "name": kept.name,
            "createdAt": written_time(kept.created),
            "size": kept.size,
            "memory": kept.memory or None,
            "quiesced": kept.quiesced or None,
            "lost": kept.lost or None,
        }
    )


def _written_restore(restored: Restored) -> Object:
    return _said(
        {
            "snapshot": restored.snapshot,
            "request": restored.request,
            "succeeded": restored.succeeded,
            "reason": restored.reason or None,
            "message": restored.message or None,
            "completedAt": written_time(restored.at),
        }
    )


def _said(entry: Object) -> Object:
    return {name: value for name, value in entry.items() if value is not None}
