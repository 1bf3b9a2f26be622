"""Has objects looked at again when something changes that they refer to."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from novacron.controllers.ports import ReferringKind
from novacron.core.surroundings import Reference
from novacron.runtime.cache import Cache, Change
from novacron.runtime.resource import Key, Object

__all__ = ["Related"]


@dataclass(slots=True)
class Related:
    """Satisfies ``Surroundings``, and knows which objects of a kind refer to which others.

    ``wake`` gets the key of each that refers to something that changed, ``used`` whatever gained
    or lost somebody who refers to it.
    """

    kind: ReferringKind
    wake: Callable[[Key], None]
    used: Callable[[Reference], None]
    _caches: dict[str, Cache] = field(default_factory=dict)
    _referring: dict[Reference, set[Key]] = field(default_factory=dict)
    _references: dict[Key, frozenset[Reference]] = field(default_factory=dict)

    def follow_referring(self, cache: Cache) -> None:
        """Keep who refers to what as a cache has it."""
        cache.subscribe(self._referring_changed)

    def follow_referred(self, cache: Cache) -> None:
        """Tell those who refer to the objects of a cache whenever one changes.

        What we write about such an object ourselves is about them, and nothing new to them.
        """
        plural = cache.resource.plural
        self._caches[plural] = cache

        def changed(change: Change) -> None:
            if change.writer is not None:
                return
            named = Reference(plural, change.key.namespace, change.key.name)
            for reference in (named, named._replace(name="")):
                for key in self._referring.get(reference, ()):
                    self.wake(key)

        cache.subscribe(changed)

    def get(self, reference: Reference) -> Object | None:
        """Return what an object refers to, if it is there."""
        return self._caches[reference.plural].get(Key(reference.namespace, reference.name))

    def every(self, plural: str) -> Iterator[Object]:
        """Return all objects of a kind."""
        return self._caches[plural].objects()

    def users(self, reference: Reference) -> Iterable[Key]:
        """Return the keys of those who refer to something."""
        return self._referring.get(reference, ())

    def _referring_changed(self, change: Change) -> None:
        before = self._references.pop(change.key, frozenset())
        after = frozenset(self.kind.references(change.object)) if change.object else frozenset()
        for gone in before - after:
            self._referring[gone].discard(change.key)
            if not self._referring[gone]:
                del self._referring[gone]
        for reference in after:
            self._referring.setdefault(reference, set()).add(change.key)
        if after:
            self._references[change.key] = after
        for reference in before ^ after:
            self.used(reference)
