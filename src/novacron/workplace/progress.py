"""How long work tells of itself, without knowing whether a person or a log is listening."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

__all__ = ["Lines", "Progress", "Silent"]


class Progress(Protocol):
    """Whoever shows progress."""

    def say(self, text: str) -> None:
        """Tell what is being done now."""

    def count(self, what: str, done: int, total: int) -> None:
        """Tell how far it is."""


class Silent:
    """Shows nothing."""

    def say(self, text: str) -> None:
        """Keep quiet."""

    def count(self, what: str, done: int, total: int) -> None:
        """Keep quiet."""


@dataclass(slots=True)
class Lines:
    """Tells progress line by line, at most one line for each tenth of the way."""

    write: Callable[[str], None]
    _tenth: int = -1

    def say(self, text: str) -> None:
        """Write what is being done now."""
        self._tenth = -1
        self.write(text)

    def count(self, what: str, done: int, total: int) -> None:
        """Write how far it is when a tenth more is done."""
        tenth = done * 10 // max(total, 1)
        if tenth > self._tenth:
            self._tenth = tenth
            self.write(f"{done} of {total} {what}")
