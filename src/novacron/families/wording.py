"""How objects of any family write amounts, conditions and moments, and back."""

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

from novacron.core.conditions import Condition
from novacron.core.errors import Rejected
from novacron.core.machine import Resources
from novacron.core.quantity import format_mib, mib
from novacron.core.resources import Share

__all__ = [
    "amounts",
    "as_the_schema_says",
    "conditions_of",
    "time_of",
    "written_amounts",
    "written_conditions",
    "written_time",
]

Object = dict[str, Any]


class as_the_schema_says:  # noqa: N801 - it is read as a phrase
    """Raises Rejected when what is inside finds the object other than its definition says."""

    __slots__ = ()

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        """End."""
        if isinstance(error, (KeyError, TypeError, ValueError, AttributeError)):
            raise Rejected(
                f"the object is not as its definition says: {error!r}", reason="InvalidSpec"
            ) from error


def amounts(written: Mapping[str, Any] | None) -> Resources | None:
    """Return amounts as they are written in a status; None where none are."""
    if not written:
        return None
    return Resources(
        written["cpu"],
        mib(written["memory"]),
        mib(written["disk"]),
        tuple(
            Share(each["storageClass"], each["id"], mib(each["size"]))
            for each in written.get("volumes") or ()
        ),
    )


def written_amounts(amount: Resources | None) -> Object | None:
    """Return amounts as a status has them."""
    if amount is None:
        return None
    written: Object = {
        "cpu": amount.vcpus,
        "memory": format_mib(amount.memory_mib),
        "disk": format_mib(amount.disk_mib),
    }
    if amount.shares:
        written["volumes"] = [
            {"id": share.volume, "storageClass": share.storage_class, "size": format_mib(share.mib)}
            for share in amount.shares
        ]
    return written


def conditions_of(status: Mapping[str, Any]) -> tuple[Condition, ...]:
    """Return the conditions of a status."""
    return tuple(
        Condition(
            type=entry["type"],
            status=entry["status"],
            reason=entry.get("reason", ""),
            message=entry.get("message", ""),
            probed=time_of(entry.get("lastProbeTime")),
            since=time_of(entry.get("lastTransitionTime")),
        )
        for entry in status.get("conditions") or ()
    )


def written_conditions(conditions: tuple[Condition, ...]) -> list[Object]:
    """Return conditions as a status has them."""
    return [
        {
            "type": claim.type,
            "status": claim.status,
            "reason": claim.reason,
            "message": claim.message,
            "lastProbeTime": written_time(claim.probed),
            "lastTransitionTime": written_time(claim.since),
        }
        for claim in conditions
    ]


def time_of(text: str | None) -> datetime | None:
    """Return a moment as Kubernetes writes it."""
    return datetime.fromisoformat(text) if text else None


@lru_cache(maxsize=256)  # one status tells the same few moments many times over
def written_time(moment: datetime | None) -> str | None:
    """Return a moment for Kubernetes."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ") if moment else None
