"""How ``up`` shows what it does: a live line on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Protocol

from novacron.cli.output import coloured
from novacron.workplace.progress import Lines, Progress

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

__all__ = ["Display", "display"]


class Display(Protocol):
    """Shows one step after another."""

    def step(self, title: str) -> AbstractContextManager[Progress]:
        """Show a step while it lasts."""


def display() -> Display:
    """Return the display that suits where the output goes."""
    return _Live() if sys.stdout.isatty() else _Plain()


class _Plain:
    """For logs: a line when a step begins, indented lines below it."""

    @contextmanager
    def step(self, title: str) -> Iterator[Progress]:
        """Write the title, then whatever the step says."""
        print(f"{title} …", flush=True)  # noqa: T201
        yield Lines(lambda line: print(f"  {line}", flush=True))  # noqa: T201


class _Live:
    """For people: one moving line for the step at work, a tick for each that is done."""

    @contextmanager
    def step(self, title: str) -> Iterator[Progress]:
        """Move a line while the step lasts; leave a tick or a cross."""
        from rich.console import Console  # noqa: PLC0415 - heavy

        console = Console(no_color=not coloured(), highlight=False)
        started = time.monotonic()
        bars = _bars(console)
        try:
            with bars:
                yield _Line(bars, title)
        except BaseException:
            console.print(f"[red]✗[/red] {title}")
            raise
        console.print(f"[green]✓[/green] {title} [dim]{time.monotonic() - started:.1f} s[/dim]")


class _Line:
    """One moving line."""

    def __init__(self, bars: "Bars", title: str) -> None:
        self._bars = bars
        self._title = title
        self._task: TaskID = bars.add_task(title, total=None, counted="")

    def say(self, text: str) -> None:
        """Put the text behind the title and begin to count anew."""
        self._bars.update(
            self._task, description=f"{self._title}: {text}", total=None, completed=0, counted=""
        )

    def count(self, what: str, done: int, total: int) -> None:
        """Move the bar."""
        counted = f"{done} of {total} {what}"
        self._bars.update(self._task, completed=done, total=total, counted=counted)


def _bars(console: "Console") -> "Bars":
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415
    from rich.progress import Progress as Bars  # noqa: PLC0415

    counted = TextColumn("{task.fields[counted]}")
    title = TextColumn("{task.description}")
    columns = (SpinnerColumn(), title, BarColumn(30), counted, TimeElapsedColumn())
    return Bars(*columns, console=console, transient=True)
