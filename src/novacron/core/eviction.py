"""Which machines are to leave a host that nothing may run on which does not tolerate it, and when.

Kubernetes ends pods there. Machines are moved while they run, or stay: this only says who and when.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from novacron.core.affinity import Toleration
from novacron.core.taint import Taint

__all__ = ["OUT_OF_SERVICE", "Eviction", "evicting", "leaves"]

NO_EXECUTE = "NoExecute"
# Kubernetes' own word of somebody who made sure that a node is off.
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
# Every pod is given these, so that a node which is away for a moment loses none.
USUAL = tuple(
    Toleration(f"node.kubernetes.io/{key}", effect=NO_EXECUTE, seconds=300)
    for key in ("not-ready", "unreachable")
)
AT_ONCE = timedelta(0)


@dataclass(frozen=True, slots=True)
class Eviction:
    """A taint that has machines leave, and since when it is known."""

    taint: Taint
    since: datetime


def evicting(taints: Iterable[Taint]) -> tuple[Taint, ...]:
    """Return the taints that have machines leave.

    Not the one of a host that is off: nothing can be moved away from there.
    """
    return tuple(
        taint for taint in taints if taint.effect == NO_EXECUTE and taint.key != OUT_OF_SERVICE
    )


def leaves(
    taints: Sequence[Taint],
    tolerations: Sequence[Toleration],
    since: Mapping[Taint, datetime],
    now: datetime,
) -> Taint | timedelta | None:
    """Return the taint for which a machine leaves now, or how long it may stay; None is for ever.

    Of several tolerations for one taint the first counts, as with pods. ``since`` is since when
    taints are known; one that is not in it is new.
    """
    stays: timedelta | None = None
    for taint in evicting(taints):
        found = next((each for each in (*tolerations, *USUAL) if each.tolerates(taint)), None)
        if found is None:
            return taint
        if found.seconds is None:
            continue
        left = since.get(taint, now) + timedelta(seconds=found.seconds) - now
        if left <= AT_ONCE:
            return taint
        stays = left if stays is None else min(stays, left)
    return stays
