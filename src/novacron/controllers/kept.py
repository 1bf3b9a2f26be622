"""Which volumes are told of as kept, and by which host: each once, and none that a machine has.

A host knows only its own machines. What is in a place that others see too may be a machine's of
any of them, so whoever knows all machines has the last word.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from novacron.controllers.ledger import Ledger, Owner
from novacron.controllers.ports import PlacedKind
from novacron.core.errors import Rejected
from novacron.core.host import HostFacts
from novacron.core.machine import Machine
from novacron.core.volume import Hold
from novacron.runtime.cache import Cache, Change
from novacron.runtime.resource import Key, Resource

__all__ = ["VolumeHolders", "told_once"]

Volume = tuple[str, str]


@dataclass(slots=True)
class VolumeHolders:
    """The volumes that machines have, had, or ask for, by namespace and id."""

    _of: dict[Owner, frozenset[Volume]] = field(default_factory=dict)
    _by: dict[Volume, dict[Owner, Hold]] = field(default_factory=dict)

    def follow(self, cache: Cache, kind: PlacedKind) -> None:
        """Keep what machines hold as a cache has it."""

        def changed(change: Change) -> None:
            owner = Owner(cache.resource, change.key)
            try:
                held = kind.volumes_held(change.object) if change.object else {}
            except Rejected:
                return  # what it had is its own until somebody can tell
            self._set(owner, {(change.key.namespace, each): hold for each, hold in held.items()})

        cache.subscribe(changed)

    def has(self, namespace: str, volume: str) -> bool:
        """Say whether a volume is a machine's."""
        return (namespace, volume) in self._by

    def other(self, resource: Resource, machine: Machine, volume: str, least: Hold) -> str | None:
        """Return the name of another machine that holds a volume at least so much, if one does."""
        own = Owner(resource, Key(machine.namespace, machine.name))
        holding = self._by.get((machine.namespace, volume), {})
        others = (each.key.name for each, hold in holding.items() if each != own and hold >= least)
        return min(others, default=None)

    def _set(self, owner: Owner, now: Mapping[Volume, Hold]) -> None:
        for volume in self._of.pop(owner, frozenset()) - now.keys():
            del self._by[volume][owner]
            if not self._by[volume]:
                del self._by[volume]
        for volume, hold in now.items():
            self._by.setdefault(volume, {})[owner] = hold
        if now:
            self._of[owner] = frozenset(now)


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
