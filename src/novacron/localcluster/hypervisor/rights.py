"""Whether root is really root: in many containers it may neither mount nor make bridges."""

import re
from pathlib import Path

__all__ = ["missing_right"]

STATUS = Path("/proc/self/status")
NEEDED = {"CAP_SYS_ADMIN": 21, "CAP_NET_ADMIN": 12, "CAP_SETUID": 7, "CAP_CHOWN": 0}


def missing_right() -> str | None:
    """Return a right that root's daemon needs and this process does not have."""
    found = re.search(r"^CapEff:\s*([0-9a-f]+)$", STATUS.read_text(), re.MULTILINE)
    held = int(found[1], 16) if found else 0
    return next((name for name, bit in NEEDED.items() if not held >> bit & 1), None)
