"""Which volumes are told of as kept, and by which host: each once, and none that a machine has.

A host knows only its own machines. What is in a place that others see too may be a machine's of
any of them, so whoever knows all machines has the last word.
"""

from collections import Counter
from dataclasses import dataclass, field, replace

from novacron.controllers.ledger import Ledger, Owner
from novacron.controllers.ports import PlacedKind
from novacron.core.errors import Rejected
from novacron.core.host import HostFacts
from novacron.runtime.cache import Cache, Change

__all__ = ["VolumeHolders", "told_once"]

Volume = tuple[str, str]
NONE: frozenset[Volume] = frozenset()


@dataclass(slots=True)
class VolumeHolders:
    """The volumes that machines have, had, or ask for, by namespace and id."""

    _of: dict[Owner, frozenset[Volume]] = field(default_factory=dict)
    _times: Counter[Volume] = field(default_factory=Counter)

    def follow(self, cache: Cache, kind: PlacedKind) -> None:
        """Keep what machines hold as a cache has it."""

        def changed(change: Change) -> None:
            owner = Owner(cache.resource, change.key)
            try:
                ids = kind.volume_ids(change.object) if change.object else frozenset()
            except Rejected:
                return  # what it had is its own until somebody can tell
            self._set(owner, frozenset((change.key.namespace, each) for each in ids))

        cache.subscribe(changed)

    def has(self, namespace: str, volume: str) -> bool:
        """Say whether a volume is a machine's."""
        return (namespace, volume) in self._times

    def _set(self, owner: Owner, now: frozenset[Volume]) -> None:
        before = self._of.get(owner, NONE)
        if now == before:
            return
        self._times.update(now - before)
        for each in before - now:
            self._times[each] -= 1
            if not self._times[each]:
                del self._times[each]
        if now:
            self._of[owner] = now
        else:
            del self._of[owner]


def told_once(facts: HostFacts, holders: VolumeHolders, ledger: Ledger) -> HostFacts:
    """Return what a host says with those kept volumes only that it is the one to tell of."""
    kept = tuple(
        each
        for each in facts.kept_volumes
        if not holders.has(each.namespace, each.id) and _tells(facts.name, each.storage, ledger)
    )
    return facts if kept == facts.kept_volumes else replace(facts, kept_volumes=kept)


def _tells(host: str, storage: str, ledger: Ledger) -> bool:
    """Say whether a host is the first of those that see a place."""
    if not storage:
        return True
    others = (
        each.name
        for each in ledger.declared.values()
        if storage in each.storage_ids and not each.deleting
    )
    return host <= min(others, default=host)
