"""JSON from the API server, which allows more levels than whoever reads it here.

Kinds that keep unknown fields let their users nest what they like. One such object would otherwise
keep us from a whole list, or from all that a watch has to say after it.
"""

import re
from collections.abc import Iterator

import orjson

from novacron.runtime.resource import Object

__all__ = ["loads"]

# More than orjson writes, so that an object that was cut is neither kept nor written back; and
# fewer than it reads.
LEVELS = 512
# A text that is broken off is one all the same, to its end: were it none, each quote within it
# could begin one, and would be looked at to the end.
TOKENS = re.compile(rb'"(?:[^"\\]+|\\.)*+"?|[{}\[\]]', re.DOTALL)


def loads(data: bytes) -> Object:
    """Read an object; what is nested deeper than anybody reads is left out."""
    found: Object
    try:
        found = orjson.loads(data)
    except orjson.JSONDecodeError:
        found = orjson.loads(b"".join(_cut(data)))
    return found


def _cut(data: bytes) -> Iterator[bytes]:
    """Return JSON without what is below so many levels."""
    level, start = 0, 0
    for token in TOKENS.finditer(data):
        sign = token.group()
        if sign in (b"{", b"["):
            level += 1
            if level == LEVELS + 1:
                yield data[start : token.start()]
        elif sign in (b"}", b"]"):
            if level == LEVELS + 1:
                yield b"null"
                start = token.end()
            level -= 1
    yield data[start:]
