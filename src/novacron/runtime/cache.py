"""A local copy of one resource, kept current by reflectors and by our own writes.

Objects are kept as compact JSON without managedFields and parsed when read: a sixth of the
memory of dictionaries, and a reconcile reads one object. Resource versions are compared as
numbers, so of a write's answer and its watch event the one that comes second changes nothing.

Our own write is read back at once, but told only when the watch has brought it. A write on top of
it that comes sooner than that finds the server's own copy out of date, and makes it read the
object from the store and do the whole update twice.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import orjson

from novacron.runtime.resource import Key, Object, Resource, key_of

__all__ = ["Cache", "Change"]

log = logging.getLogger(__name__)


class Change(NamedTuple):
    """Something became different; ``object`` is None when it is gone.

    ``writer`` names the controller whose write it was, so that it need not look at its own work.
    """

    key: Key
    object: Object | None
    writer: str | None


class _Entry(NamedTuple):
    version: int
    data: bytes


@dataclass(slots=True)
class Cache:
    """All objects of one resource in the namespaces that are watched."""

    resource: Resource
    _entries: dict[Key, _Entry] = field(default_factory=dict)
    _handlers: list[Callable[[Change], None]] = field(default_factory=list)
    _pending_sources: set[str] = field(default_factory=set)
    _floors: dict[str, int] = field(default_factory=dict)
    _untold: dict[Key, str] = field(default_factory=dict)
    _writing: dict[Key, list[str]] = field(default_factory=dict)
    _suspected: dict[Key, int] = field(default_factory=dict)
    _synced: asyncio.Event = field(default_factory=asyncio.Event)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: Key) -> bool:
        return key in self._entries

    def subscribe(self, handler: Callable[[Change], None]) -> None:
        """Have every change told, beginning with what is there already."""
        self._handlers.append(handler)
        for key in list(self._entries):
            self._hand(handler, Change(key, self.get(key), None))

    def get(self, key: Key) -> Object | None:
        """Return a fresh copy of an object."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        parsed: Object = orjson.loads(entry.data)
        return parsed

    def keys(self) -> list[Key]:
        """Return the keys of all objects."""
        return list(self._entries)

    def objects(self) -> Iterator[Object]:
        """Return all objects, parsed one by one."""
        for entry in list(self._entries.values()):
            yield orjson.loads(entry.data)

    def expect(self, source: str) -> None:
        """Announce a source that must be listed before the cache counts as synced."""
        self._pending_sources.add(source)
        self._synced.clear()

    @property
    def is_synced(self) -> bool:
        """Say whether every source was listed once."""
        return self._synced.is_set()

    async def synced(self) -> None:
        """Wait until every source was listed once."""
        await self._synced.wait()

    def remember(self, obj: Object, writer: str) -> None:
        """Take in the answer to one of our own writes, so that it is read back at once.

        The write must have named the version it was based on: otherwise the answer may hold
        somebody else's change too, which the writer would then never look at.
        An object that is not here is left to the watch: it may just have been deleted.
        """
        key = key_of(obj)
        if key in self._entries and self._store(key, obj):
            self._untold[key] = writer

    @contextmanager
    def writing(self, key: Key, writer: str) -> Iterator[Callable[[Object], None]]:
        """Take what a watch brings of an object meanwhile for this write; give it the answer.

        A watch is often faster than the answer, and a writer would look at its own work then.
        """
        answers: list[Object] = []
        self.begin(key, writer)
        try:
            yield answers.append
        finally:
            self.end(key, writer, answers[0] if answers else None)

    def begin(self, key: Key, writer: str) -> None:
        """Note that somebody is about to write an object."""
        self._writing.setdefault(key, []).append(writer)

    def end(self, key: Key, writer: str, answer: Object | None) -> None:
        """Take in the answer to a write, or that there is none."""
        self._writing[key].remove(writer)
        if not self._writing[key]:
            del self._writing[key]
        suspected = self._suspected.pop(key, None)
        if answer is not None:
            self.remember(answer, writer)
        mistaken = suspected is not None and (answer is None or suspected != _version(answer))
        if mistaken and (obj := self.get(key)) is not None:
            self._tell(Change(key, obj, None))  # it was somebody else's, which the writer missed

    def seen(self, obj: Object) -> None:
        """Take in an object from a watch or a list."""
        key = key_of(obj)
        if self._store(key, obj):
            self._untold.pop(key, None)
            self._tell(Change(key, obj, self._suspect(key)))
        elif key in self._untold and _version(obj) == self._entries[key].version:
            self._tell(Change(key, obj, self._untold.pop(key)))

    def _suspect(self, key: Key) -> str | None:
        """Return who is likely to have written what was just stored: only the first can be his."""
        writers = self._writing.get(key, ())
        if len(writers) != 1 or key in self._suspected:
            return None
        self._suspected[key] = self._entries[key].version
        return writers[0]

    def gone(self, obj: Object) -> None:
        """Take in a deletion from a watch."""
        self._drop(key_of(obj), _version(obj))

    def listed(self, source: str, present: Set[Key], version: str) -> None:
        """Take in that a list of one source (a namespace, or "" for all of them) is complete.

        Its objects were ``seen`` before. What the list does not have is gone, unless it was
        written after the list was read.
        """
        for key in self.keys():
            if key not in present and source in ("", key.namespace):
                self._drop(key, int(version))
        self._floors[source] = int(version)
        self._pending_sources.discard(source)
        if not self._pending_sources:
            self._synced.set()

    def _store(self, key: Key, obj: Object) -> bool:
        """Keep an object unless a newer one is known; say whether it is news."""
        version = _version(obj)
        entry = self._entries.get(key)
        if version <= (entry.version if entry else self._floor(key)):
            return False
        obj["metadata"].pop("managedFields", None)
        try:
            data = orjson.dumps(obj)
        except TypeError as error:
            # Some kinds let their users nest what they like. Nobody else's objects wait for that.
            log.error("%s %s cannot be kept: %s", self.resource.kind, key, error)
            return False
        self._entries[key] = _Entry(version, data)
        return True

    def _floor(self, key: Key) -> int:
        # What a list did not have is gone: an older event that a watch still brings is no news.
        return max(self._floors.get("", 0), self._floors.get(key.namespace, 0))

    def _drop(self, key: Key, version: int) -> None:
        entry = self._entries.get(key)
        if entry is None or entry.version > version:
            return
        del self._entries[key]
        self._untold.pop(key, None)
        self._suspected.pop(key, None)
        self._tell(Change(key, None, None))

    def _tell(self, change: Change) -> None:
        for handler in self._handlers:
            self._hand(handler, change)

    def _hand(self, handler: Callable[[Change], None], change: Change) -> None:
        """Tell one; should he fail, others hear of it all the same, and he of other objects."""
        try:
            handler(change)
        except Exception:
            log.exception("%s %s was not understood", self.resource.kind, change.key)


def _version(obj: Object) -> int:
    return int(obj["metadata"]["resourceVersion"])
