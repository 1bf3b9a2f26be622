"""What guests said that failed, for KubeVirt forgets it between two tries."""

from dataclasses import dataclass, field

from novacron.drivers.kubevirt.view import condition
from novacron.runtime.cache import Change
from novacron.runtime.resource import Key

__all__ = ["LastWords"]


@dataclass(slots=True)
class LastWords:
    """The last complaint of each guest that has not run since; a guest has its machine's name."""

    _of: dict[Key, str] = field(default_factory=dict)

    def of(self, key: Key) -> str:
        """Return what a guest complained of; empty where it did not."""
        return self._of.get(key, "")

    def guest_changed(self, change: Change) -> None:
        """Note what a guest says, and forget it once it runs."""
        guest = change.object
        if guest is None:
            return  # another try follows, unless its machine goes too
        said = condition(guest, "Synchronized")
        if said.get("status") == "False" and said.get("message"):
            self._of[change.key] = said["message"]
        elif (guest.get("status") or {}).get("phase") == "Running":
            self._of.pop(change.key, None)

    def machine_changed(self, change: Change) -> None:
        """Forget a machine that is gone."""
        if change.object is None:
            self._of.pop(change.key, None)
