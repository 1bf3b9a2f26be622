"""What a machine of any family says about snapshots: the policy, orders, and what there is."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from novacron.crd import Model, Rule
from novacron.families.shared_types import Amount, Name

__all__ = [
    "RestoreRequest",
    "RestoreStatus",
    "ScheduleStatus",
    "SnapshotPolicy",
    "SnapshotRequest",
    "SnapshotStatus",
]

_CRON_FIELD = "[0-9A-Za-z*/,#-]+"
_CRON = (
    "^(@(yearly|annually|monthly|weekly|daily|midnight|hourly)"
    f"|{_CRON_FIELD}( +{_CRON_FIELD}){{4}})$"
)


class SnapshotPolicy(Model):
    """When snapshots are taken, how many are kept, and what becomes of them in the end."""

    __rules__ = (
        Rule(
            "has(self.schedule) || !has(self.timeZone)",
            "timeZone is the schedule's: there is none",
            field_path=".timeZone",
            reason="FieldValueForbidden",
        ),
        Rule(
            "has(self.schedule) || !self.memory",
            "memory is for snapshots by schedule, and there is none: those on demand say it each",
            field_path=".memory",
            reason="FieldValueForbidden",
        ),
    )

    schedule: (
        Annotated[
            str,
            Field(max_length=128),
            Rule(
                f"self.matches('{_CRON}')",
                "must be a cron schedule of five fields such as '0 2 * * *', or @daily and the "
                "like",
            ),
        ]
        | None
    ) = None
    """When, as a cron schedule; without it, none is taken by itself."""
    time_zone: (
        Annotated[
            str,
            Field(max_length=64),
            Rule(
                "self.matches('^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$')",
                "must be the name of a time zone such as Europe/Vienna or UTC",
            ),
        ]
        | None
    ) = None
    """The time zone of the schedule; without it, UTC."""
    retention: Annotated[int, Field(ge=1, le=1000)] = 7
    """How many of those taken by schedule are kept; the oldest go first. Without one, all are."""
    memory: bool = False
    """Whether the memory of a running machine is kept too; it stands still while it is saved."""
    on_delete: Literal["Delete", "Protect"] = "Delete"
    """What becomes of snapshots, also of those on demand, when the machine is deleted: they go with
    it, or it has to wait."""


class SnapshotRequest(Model):
    """A snapshot to take, or to remove. Taking an entry away from the list changes nothing."""

    __rules__ = (
        Rule(
            "self.?discard.orValue(false) || !self.name.matches('^snapshot-[0-9]{8}-[0-9]{6}$')",
            "names such as snapshot-20240120-020000 are for scheduled snapshots; choose another",
            field_path=".name",
        ),
        Rule(
            "self.?discard.orValue(false) || !self.name.matches('^[0-9]+$')",
            "a name of digits only could be taken for the number of another snapshot; choose "
            "another",
            field_path=".name",
        ),
        Rule(
            "!self.?discard.orValue(false) || !has(self.memory)",
            "memory is for snapshots to take, not for those to discard",
            field_path=".memory",
            reason="FieldValueForbidden",
        ),
    )

    name: Name
    """The snapshot's name."""
    memory: bool | None = None
    """Whether the memory of a running machine is kept too; without it, no."""
    discard: bool | None = None
    """Whether the snapshot is to be removed; without it, it is to be taken."""


class RestoreRequest(Model):
    """A snapshot to go back to. What was written since is lost."""

    snapshot: Name
    """The snapshot's name."""
    request: Annotated[str, Field(min_length=1, max_length=128)]
    """Any text, such as the time; each new one goes back once."""


class SnapshotStatus(Model):
    """A snapshot there is."""

    name: Annotated[str, Field(min_length=1, max_length=253)]
    """Its name."""
    created_at: datetime | None = None
    """When it was taken."""
    size: Amount | None = None
    """What it holds: the disks' own data when it was taken, and the memory."""
    memory: bool | None = None
    """Whether it has the memory of the running machine."""
    quiesced: bool | None = None
    """Whether the guest's file systems were at rest when it was taken."""
    lost: bool | None = None
    """Whether it was removed from its host by somebody else."""


class RestoreStatus(Model):
    """What became of the last restore."""

    snapshot: str
    """The snapshot's name."""
    request: str
    """The request's text."""
    succeeded: bool
    """Whether the machine went back to it."""
    reason: Annotated[str, Field(max_length=1024)] | None = None
    """Why it did not, in a word."""
    message: Annotated[str, Field(max_length=32768)] | None = None
    """What was done, or why nothing was."""
    completed_at: datetime | None = None
    """When that was clear."""


class ScheduleStatus(Model):
    """How far the schedule of snapshots was followed."""

    schedule: str
    """The schedule and its time zone."""
    since: datetime | None = None
    """The last run that was made, or when this schedule was first seen."""
    next_time: datetime | None = None
    """When this machine's next one begins; machines of one schedule do not begin all at once."""
