"""What shows that a record in an annotation is our own word.

Whoever may edit a machine may write any annotation of it, so a record is believed only with a
seal that takes a key to make. Whoever copies one to another object finds its UID in it.
"""

import hashlib
import hmac
from dataclasses import dataclass, field
from typing import Any

import orjson

__all__ = ["UNCHECKED", "Seal"]

Object = dict[str, Any]

FIELD = "seal"
SEAL_BYTES = 16
# Ours are much shorter; what anybody wrote is not worth reading, or keeping, beyond that.
LONGEST = 32 * 1024


@dataclass(slots=True, eq=False)
class Seal:
    """Seals records with a key that all operators of a cluster share.

    Without one nothing is sealed and all is believed: for who only shows what is written.
    """

    key: bytes = field(repr=False)

    def closed(self, purpose: str, record: Object) -> str:
        """Return a record as text that nobody else can write."""
        text = _plain(record)
        sealed = _plain(record | {FIELD: self._mark(purpose, text)}) if self.key else text
        return sealed.decode()

    def opened(self, purpose: str, text: str) -> Object | None:
        """Return the record in a text; None where it is not ours, or is not for this purpose."""
        if len(text) > LONGEST:
            return None
        try:
            record = orjson.loads(text)
            if not isinstance(record, dict):
                return None
            mark = record.pop(FIELD, None)
            ours = not self.key or (isinstance(mark, str) and self._fits(purpose, record, mark))
        except (TypeError, ValueError):  # what can be read cannot always be written again
            return None
        return record if ours else None

    def _fits(self, purpose: str, record: Object, mark: str) -> bool:
        return hmac.compare_digest(self._mark(purpose, _plain(record)).encode(), mark.encode())

    def _mark(self, purpose: str, text: bytes) -> str:
        person = purpose.encode()
        # Keyed by itself, which takes a third of the time of an HMAC.
        return hashlib.blake2b(
            text, digest_size=SEAL_BYTES, key=self.key, person=person
        ).hexdigest()


UNCHECKED = Seal(b"")


def _plain(record: Object) -> bytes:
    return orjson.dumps(record, option=orjson.OPT_SORT_KEYS)
