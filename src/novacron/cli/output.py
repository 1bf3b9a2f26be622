"""Showing objects: tables for people, JSON and YAML for programs."""

import datetime as dt
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import click

from novacron.cli.options import Format

__all__ = ["Column", "age", "coloured", "show_list", "show_object", "show_value", "table"]

Object = dict[str, Any]
GAP = "   "
COLOURS = {
    **dict.fromkeys(("Running", "True", "Ready", "running", "fine", "ready"), "green"),
    **dict.fromkeys(("Failed", "False", "stopped", "wrong", "Warning"), "red"),
    **dict.fromkeys(("Pending", "Migrating", "Unknown", "not ready"), "yellow"),
}


class Column(NamedTuple):
    """A column of a table of objects."""

    title: str
    value: Callable[[Object], object]


def show_list(format_: Format, objects: Sequence[Object], columns: Sequence[Column]) -> None:
    """Print objects; as JSON or YAML they are one List, as kubectl prints them."""
    if format_ is not Format.TABLE:
        items = [_without_noise(item) for item in objects]
        show_value(format_, {"apiVersion": "v1", "kind": "List", "items": items})
    elif objects:
        rows = [[column.value(item) for column in columns] for item in objects]
        click.echo(table([column.title for column in columns], rows))
    else:
        click.echo("none found", err=True)


def show_object(format_: Format, item: Object, columns: Sequence[Column]) -> None:
    """Print one object."""
    if format_ is Format.TABLE:
        show_list(format_, [item], columns)
    else:
        show_value(format_, _without_noise(item))


def show_value(format_: Format, value: Mapping[str, Any]) -> None:
    """Print a value for a program to read."""
    if format_ is Format.JSON:
        click.echo(json.dumps(value, indent=2, ensure_ascii=False))
    else:
        from novacron.crd.manifest import to_yaml  # noqa: PLC0415 - heavy

        click.echo(to_yaml(value), nl=False)


def table(titles: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return aligned columns; an empty cell is a dash, so that every row has all of them."""
    cells = [[_text(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(titles, *cells, strict=True)]
    lines = [_line(titles, widths)]
    lines += [_line(row, widths, paint=coloured()) for row in cells]
    return "\n".join(lines)


def coloured() -> bool:
    """Say whether the output may have colours: a terminal, and nobody said no."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def age(timestamp: str | None, now: dt.datetime | None = None) -> str:
    """Return how long ago a moment was, in the largest unit that says something."""
    if not timestamp:
        return ""
    passed = (now or dt.datetime.now(dt.UTC)) - dt.datetime.fromisoformat(timestamp)
    seconds = max(0, int(passed.total_seconds()))
    for unit, size, enough in (("d", 86400, 2), ("h", 3600, 2), ("m", 60, 2)):
        if seconds >= size * enough:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def _line(cells: Sequence[str], widths: Sequence[int], *, paint: bool = False) -> str:
    padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
    padded[-1] = cells[-1]
    if paint:
        padded = [
            click.style(text, fg=COLOURS[cell]) if cell in COLOURS else text
            for cell, text in zip(cells, padded, strict=True)
        ]
    return GAP.join(padded)


def _text(cell: object) -> str:
    return "-" if cell is None or cell == "" else str(cell).replace("\n", " ")


def _without_noise(item: Object) -> Object:
    metadata = {k: v for k, v in item.get("metadata", {}).items() if k != "managedFields"}
    return {**item, "metadata": metadata}
