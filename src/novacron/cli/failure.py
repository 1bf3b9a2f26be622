"""Failures a user can do something about: one sentence, exit code 1, no trace."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from novacron.workplace.errors import WorkplaceError

__all__ = ["Failure", "reported"]


class Failure(Exception):
    """Something went wrong; the message is a sentence for the user."""


@contextmanager
def reported() -> Iterator[None]:
    """Turn known failures into a message on the error output and exit code 1."""
    try:
        yield
    except (Failure, WorkplaceError) as failure:
        print(f"error: {failure}", file=sys.stderr)  # noqa: T201
        sys.exit(1)
    except BrokenPipeError:
        # Whoever read our output has seen enough, as `| head` does.
        sys.stderr.close()
        sys.exit(1)
