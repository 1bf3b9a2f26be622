"""How a run of a container ended, as the status tells it: code, reason, and last words."""

from contextlib import suppress
from pathlib import Path

from novacron.localcluster.node.records import ContainerRecord
from novacron.localcluster.node.status import Terminated
from novacron.runtime.resource import Object

__all__ = ["terminated"]

LONGEST_MESSAGE = 4096
LONGEST_LOG = 2048
LOG_LINES = 80


def terminated(record: ContainerRecord, container: Object, attempt: int) -> Terminated:
    """Return how a run ended that runs no more."""
    how = record.exit(attempt)
    reason = how.reason or ("Completed" if how.code == 0 else "Error")
    message = how.message or _last_words(record, container, attempt, how.code)
    return Terminated(how.code, reason, how.since, how.until, message)


def _last_words(record: ContainerRecord, container: Object, attempt: int, code: int) -> str:
    said = ""
    with suppress(OSError):
        said = record.message(attempt).read_bytes()[:LONGEST_MESSAGE].decode(errors="replace")
    fallback = container.get("terminationMessagePolicy") == "FallbackToLogsOnError"
    return said or (_end_of(record.log(attempt)) if fallback and code else "")


def _end_of(log: Path) -> str:
    try:
        lines = log.read_bytes().splitlines()[-LOG_LINES:]
    except OSError:
        return ""
    # Each line begins with its moment, its stream and a tag.
    text = b"\n".join(line.split(b" ", 3)[-1] for line in lines)
    return text[-LONGEST_LOG:].decode(errors="replace")
