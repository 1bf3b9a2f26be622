"""When a measurement is worth writing down."""

from datetime import datetime, timedelta

from novacron.core.machine import Usage

__all__ = ["NOW", "due_in", "noticeably_differs"]

SHORTEST_INTERVAL = timedelta(minutes=1)
SMALLEST_CHANGE = 0.1
NOW = timedelta(0)


def due_in(
    written: Usage | None, measured: Usage | None, written_at: datetime | None, now: datetime
) -> timedelta | None:
    """Say when a measurement is to be written: zero is now, None is never.

    It must differ by a tenth from what is written, and that must be a minute old.
    """
    if measured is None or not (written is None or _differs_enough(written, measured)):
        return None
    if written is None or written_at is None:
        return NOW
    return max(NOW, written_at + SHORTEST_INTERVAL - now)


def noticeably_differs(before: Usage | None, after: Usage | None) -> bool:
    """Say whether a measurement is news beside another."""
    if before is None or after is None:
        return before is not after
    return _differs_enough(before, after)


def _differs_enough(written: Usage, measured: Usage) -> bool:
    return any(
        _differs(old, new)
        for old, new in (
            (written.cpu_cores, measured.cpu_cores),
            (written.memory_mib, measured.memory_mib),
            (written.disk_mib, measured.disk_mib),
        )
    )


def _differs(old: float | None, new: float | None) -> bool:
    if old is None or new is None:
        return old is not new
    return new != old and abs(new - old) >= SMALLEST_CHANGE * max(abs(old), abs(new))
