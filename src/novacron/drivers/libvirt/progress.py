"""How far an image is; written by the thread that brings it, read by whoever looks.

And the other way round: whether anybody still wants it.
"""

from dataclasses import dataclass

from novacron.core.errors import Busy

__all__ = ["Progress"]

MIB = 1024 * 1024
# So that a status is written a few dozen times for an image, not for every look.
STEP_PERCENT = 5
STEP_MIB = 64


@dataclass(slots=True)
class Progress:
    """Bytes that came, of how many if that is known; perhaps by another process."""

    done: int = 0
    total: int | None = None
    elsewhere: bool = False
    unwanted: bool = False

    def require_wanted(self) -> None:
        """Give up what nobody waits for any more; whoever wants it next can go on with it."""
        if self.unwanted:
            raise Busy("nobody waits for the image any more", reason="ImageIncomplete")

    @property
    def sentence(self) -> str:
        """Say it in a few words, which change every now and then only."""
        if self.elsewhere:
            return "image is being brought by another operator process"
        if self.total and self.done >= self.total:
            return f"image is here and being prepared, {_mib(self.total)} MiB"
        if self.total:
            percent = 100 * self.done // self.total // STEP_PERCENT * STEP_PERCENT
            return f"image {percent} % of {_mib(self.total)} MiB"
        if self.done:
            return f"image {self.done // MIB // STEP_MIB * STEP_MIB} MiB so far"
        return "image is being asked for"


def _mib(count: int) -> int:
    return -(-count // MIB)
