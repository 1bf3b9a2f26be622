"""The real operator with its clock put forward, for what comes only at night."""

import os
from datetime import timedelta
from functools import partial

from novacron.app import entry
from novacron.app import main as process
from novacron.app.operator import Operator, utc_now

__all__ = ["main"]


def main() -> None:
    """Run it as ever but for the time."""
    ahead = timedelta(seconds=float(os.environ["SECONDS_AHEAD"]))
    process.Operator = partial(Operator, now=lambda: utc_now() + ahead)  # type: ignore[misc,assignment]
    entry.main()
