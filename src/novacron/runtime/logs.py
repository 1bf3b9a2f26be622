"""Log lines: JSON for collectors, text for people; both carry what is being reconciled."""

import logging
from datetime import UTC, datetime

import orjson

from novacron.runtime.controller import RECONCILE

__all__ = ["configure_logs"]


class JsonLines(logging.Formatter):
    """One JSON object a line; ``extra={"fields": {...}}`` adds fields of the caller's."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line = {
            "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat(
                timespec="milliseconds"
            ),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_context(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return orjson.dumps(line, default=str).decode()


class TextLines(logging.Formatter):
    """Time, level, message, and the fields as key=value."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        clock = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S.%f")[:-3]
        fields = " ".join(f"{name}={value}" for name, value in _context(record).items())
        line = f"{clock} {record.levelname:<7} {record.getMessage()} {fields}".rstrip()
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


def _context(record: logging.LogRecord) -> dict[str, object]:
    fields: dict[str, object] = {}
    now = RECONCILE.get()
    if now is not None:
        fields = {
            "controller": now.controller,
            "object": str(now.key),
            "reconcile": now.number,
            **(now.about(now.key) if now.about else {}),
        }
    return fields | getattr(record, "fields", {})


def configure_logs(level: str, form: str) -> None:
    """Send all log lines to standard error in one form."""
    # Who called, and in which thread, process and task, is in none of the forms, and to find it out
    # takes as long as all else about a line.
    logging._srcfile = None
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
