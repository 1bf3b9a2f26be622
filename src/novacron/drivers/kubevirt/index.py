"""Objects of a cluster by the machine that they belong to."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from novacron.drivers.kubevirt.names import UID
from novacron.runtime.cache import Cache, Change
from novacron.runtime.resource import Key, Object, key_of

__all__ = ["Index"]


@dataclass(slots=True)
class Index:
    """Which objects of one kind belong to which machine."""

    cache: Cache
    told: Callable[[str], None]
    of: dict[str, set[Key]] = field(default_factory=dict)
    _uids: dict[Key, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.cache.subscribe(self._changed)

    def objects(self, uid: str) -> Iterator[Object]:
        """Return what a machine has of this kind."""
        for key in sorted(self.of.get(uid, ())):
            if (obj := self.cache.get(key)) is not None:
                yield obj

    def heard(self, obj: Object) -> None:
        """Take in an answer about an object that was there.

        One that is not here any more was deleted meanwhile, and that was told sooner than the
        answer came: nobody would ever tell of it again.
        """
        if key_of(obj) in self.cache:
            self.cache.seen(obj)

    def _changed(self, change: Change) -> None:
        before = self._uids.get(change.key)
        labels = change.object["metadata"].get("labels") or {} if change.object else {}
        after = labels.get(UID)
        if before is not None and before != after:
            self.of[before].discard(change.key)
            if not self.of[before]:
                del self.of[before]
            del self._uids[change.key]
        if after is not None:
            self.of.setdefault(after, set()).add(change.key)
            self._uids[change.key] = after
        for uid in {before, after} - {None}:
            self.told(str(uid))
