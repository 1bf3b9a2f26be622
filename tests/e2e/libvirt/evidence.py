"""What guests and QEMU said, kept when a test on real hosts fails and before they are cleared."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

__all__ = ["add_evidence"]

# Guests' consoles are in the pools, QEMU's own words where libvirt keeps its log.
SAID = ("**/*-console*", "**/qemu/*.log")
KEPT_LINES = 60


def add_evidence(report: pytest.TestReport, stages: Iterable[Any]) -> None:
    """Add the last lines of all that was said on the hosts of these stages to a failed test."""
    for directory in sorted({each for stage in stages for each in _directories(stage)}):
        for pattern in SAID:
            for path in sorted(directory.glob(pattern)):
                report.sections.append((str(path), _end_of(path)))


def _directories(stage: Any) -> Iterator[Path]:
    if fleet := getattr(stage, "fleet", None):
        yield fleet.directory
    elif daemon := getattr(stage, "daemon", None):
        yield daemon.directory


def _end_of(path: Path) -> str:
    lines = path.read_text(errors="replace").splitlines()
    # QEMU's log begins with a hundred arguments.
    return "\n".join([line for line in lines if not line.endswith("\\")][-KEPT_LINES:])
