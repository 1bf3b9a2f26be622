"""What KubeVirt and the storage attend to: whether one that does nothing is busy, or gone."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from novacron.runtime.cache import Change
from novacron.runtime.resource import Object

__all__ = ["OWN_TURN", "Attention"]

LONG_AGO = datetime.min.replace(tzinfo=UTC)
# So long at most it is put down to being busy that a cluster does nothing about a machine.
OWN_TURN = timedelta(minutes=5)


@dataclass(slots=True)
class Attention:
    """When KubeVirt last did something, when a claim was last bound, and who waits for that."""

    now: Callable[[], datetime]
    bound: datetime = LONG_AGO
    _heeded: datetime = LONG_AGO
    _unheeded: dict[str, datetime] = field(default_factory=dict)

    def lag(self, uid: str, vm: Object | None, now: datetime) -> timedelta:
        """Return for how long KubeVirt has not looked at a VirtualMachine, as far as seen here."""
        if vm is None or _is_heeded(vm):
            self._unheeded.pop(uid, None)
            return timedelta(0)
        since = self._unheeded.setdefault(uid, now)
        # One that is busy with others comes to this one in its turn.
        return now - (since if now - since >= OWN_TURN else max(since, self._heeded))

    def machine_changed(self, change: Change) -> None:
        """Note that KubeVirt took notice of a machine, if it did."""
        if change.object is not None and _is_heeded(change.object):
            self._heeded = self.now()

    def guest_changed(self, change: Change) -> None:
        """Note that KubeVirt did something: nobody else makes and changes guests."""
        del change
        self._heeded = self.now()

    def claim_changed(self, change: Change) -> None:
        """Note that a claim is bound, if it is."""
        if ((change.object or {}).get("status") or {}).get("phase") == "Bound":
            self.bound = self.now()


def _is_heeded(vm: Object) -> bool:
    heeded = (vm.get("status") or {}).get("desiredGeneration")
    return bool(heeded == vm["metadata"]["generation"])
