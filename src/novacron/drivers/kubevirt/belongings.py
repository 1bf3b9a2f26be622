"""All that a cluster has of one machine."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from novacron.runtime.resource import Object

__all__ = ["Belongings"]


@dataclass(frozen=True, slots=True)
class Belongings:
    """All that a cluster has of one machine, and when.

    ``unheeded`` is for how long KubeVirt has not taken notice of what its VirtualMachine says,
    ``unbound`` for how long no claim at all was bound, ``unplaced`` its pod while that has no
    node, and ``last_words`` what its guest complained of that has not run since.
    """

    machine: Object | None
    instance: Object | None
    claims: tuple[Object, ...]
    imports: tuple[Object, ...] = ()
    unheeded: timedelta = timedelta(0)
    unplaced: Object | None = None
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    unbound: timedelta = timedelta(days=1)
    last_words: str = ""

    @property
    def any(self) -> bool:
        """Say whether there is anything at all."""
        return bool(self.machine or self.instance or self.claims)
