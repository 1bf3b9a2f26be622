"""What went wrong in a way that nobody thought of: told to the user, and to whoever can mend it."""

import logging
from datetime import timedelta

from novacron.core.errors import Busy

__all__ = ["unforeseen"]

log = logging.getLogger(__name__)

# It would most likely happen again at once, and again.
LATER = timedelta(minutes=1)


def unforeseen(what: str, error: Exception) -> Busy:
    """Return what a user is told of it, and log where it happened."""
    log.error("%s failed in a way that is not known", what, exc_info=error)
    said = " ".join(str(error).split())[:300]
    return Busy(
        f"{what} failed: {type(error).__name__}{': ' if said else ''}{said}",
        LATER,
        reason="InternalError",
    )
