"""How libvirt spells what it is given: seen with two machines, known for the next of their kind.

A definition is given in our words and kept in libvirt's, and what those look like is part of our
mark. To ask for them and then to write the mark once more are the two most expensive calls of
those that make a machine.
"""

from collections.abc import Sequence
from typing import NamedTuple

from novacron.drivers.libvirt.defined import essence
from novacron.drivers.libvirt.domain import Draft

__all__ = ["Spelling"]

# Machines of a host are of few kinds; each takes some kilobytes.
MOST_KINDS = 32


class _Seen(NamedTuple):
    text: str
    twice: bool


class Spelling:
    """Definitions that libvirt of one host was given, and what it made of them.

    Kinds are told apart by all that is written down but for a machine's ``own`` words: those that
    no other machine has, such as its UUID. libvirt only repeats most of them; where it puts in
    some that are new each time, as into ports of Open vSwitch, no two machines come out the same.
    """

    def __init__(self) -> None:
        self._kinds: dict[str, _Seen] = {}

    def foreseen(self, draft: Draft, own: Sequence[str]) -> str | None:
        """Return the essence of what libvirt will make of a draft, if that is known."""
        seen = self._kinds.get(_common(draft.kind, own))
        if seen is None or not seen.twice:
            return None
        text = seen.text
        for number, word in enumerate(own):
            text = text.replace(_stand_in(number), word)
        return text

    def learn(self, draft: Draft, own: Sequence[str], text: str) -> None:
        """Take note of what libvirt made of a draft."""
        kind, common = _common(draft.kind, own), _common(essence(text), own)
        if draft.name in common:
            return  # the same machine, made again, would come out the same
        before = self._kinds.get(kind)
        if before is None and len(self._kinds) >= MOST_KINDS:
            self._kinds.clear()
        self._kinds[kind] = _Seen(common, twice=before is not None and before.text == common)


def _common(text: str, own: Sequence[str]) -> str:
    for number, word in enumerate(own):
        text = text.replace(word, _stand_in(number))
    return text


def _stand_in(number: int) -> str:
    return f"\0{number}\0"  # no XML has such a character
