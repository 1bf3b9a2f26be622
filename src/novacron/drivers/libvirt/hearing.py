"""How long agents of guests are listened to in one look at all machines of a host.

One that is connected and mute costs a second, and with many such a look would take longer than a
call may: the whole host would count as unreachable.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

__all__ = ["Addresses", "Hearing"]

# Of the minute that a call may take.
SECONDS = 10.0
# An agent that answers at all does so in some hundredths.
MUTE_SECONDS = 0.8
# By the hardware address of the interface that has them.
Addresses = Mapping[str, tuple[str, ...]]


@dataclass(slots=True)
class Hearing:
    """Asks as many agents as there is time for; of the others what they said ``before`` holds.

    Those who were not asked the last time are ``first`` now, the longest first. Those who are
    ``left_alone`` are not asked at all.
    """

    clock: Callable[[], float] = time.monotonic
    before: Mapping[str, Addresses] = field(default_factory=dict)
    first: tuple[str, ...] = ()
    left_alone: frozenset[str] = frozenset()
    _spent: float = 0.0
    _said: dict[str, Addresses] = field(default_factory=dict)
    _late: list[str] = field(default_factory=list)
    _mute: set[str] = field(default_factory=set)

    def places(self, uids: Iterable[str]) -> dict[str, int]:
        """Return at which place each machine is to be looked at."""
        places = dict.fromkeys(uids, len(self.first))
        return places | {uid: place for place, uid in enumerate(self.first)}

    def said(self, uid: str, ask: Callable[[], Addresses]) -> Addresses:
        """Return what a guest's agent says."""
        if self._spent >= SECONDS or uid in self.left_alone:
            self._late.append(uid)
            return self.before.get(uid, {})
        begun = self.clock()
        self._said[uid] = found = ask()
        took = self.clock() - begun
        self._spent += took
        if took >= MUTE_SECONDS and not found:
            self._mute.add(uid)
        return found

    def until_next(self) -> "Hearing":
        """Return the one for looks at single machines, which leave alone who is mute.

        Each of them would wait for it again, and keep the host from its work.
        """
        said = {**self.before, **self._said}
        return Hearing(self.clock, said, left_alone=frozenset(self._mute))

    def following(self, there: Collection[str]) -> "Hearing":
        """Return the one for the next look, which remembers only machines that are still there."""
        said = {**self.before, **self._said}
        known = {uid: each for uid, each in said.items() if uid in there}
        return Hearing(self.clock, known, tuple(self._late))
