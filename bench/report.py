"""What the benchmarks say at the end: bars held or missed, tables, and a file of figures."""

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

__all__ = ["Bar", "at_least", "at_most", "conclude", "show_table"]

RESULTS = Path(__file__).parent / "results"
CONSOLE = Console(soft_wrap=True)


@dataclass(frozen=True, slots=True)
class Bar:
    """One promise and whether it is kept."""

    promise: str
    measured: float
    limit: str
    held: bool


def at_least(promise: str, measured: float, limit: float) -> Bar:
    """Promise that the figure is no smaller than the limit."""
    return Bar(promise, measured, f"≥ {limit:g}", measured >= limit)


def at_most(promise: str, measured: float, limit: float) -> Bar:
    """Promise that the figure is no larger than the limit."""
    return Bar(promise, measured, f"≤ {limit:g}", measured <= limit)


def show_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; the first column names the row, the others are figures."""
    table = Table(title=title, title_justify="left")
    for index, column in enumerate(columns):
        table.add_column(column, justify="right" if index else "left")
    for row in rows:
        table.add_row(*row)
    CONSOLE.print(table)


def conclude(name: str, figures: Mapping[str, Any], bars: Sequence[Bar]) -> bool:
    """Print the bars, keep all figures in a file, and say whether every bar is held."""
    if bars:
        rows = [
            (bar.promise, f"{bar.measured:.2f}", bar.limit, "held" if bar.held else "MISSED")
            for bar in bars
        ]
        show_table(f"{name}: bars", ("promise", "measured", "bar", ""), rows)
    now = datetime.now(UTC)
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}-{now:%Y%m%dT%H%M%SZ}.json"
    document = {
        "benchmark": name,
        "at": now.isoformat(timespec="seconds"),
        "machine": _machine(),
        "bars": [asdict(bar) for bar in bars],
        **figures,
    }
    path.write_text(json.dumps(document, indent=2) + "\n")
    CONSOLE.print(f"figures: {path}")
    return all(bar.held for bar in bars)


def _machine() -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "kernel": platform.release(),
        "python": platform.python_version(),
    }
