"""``novacron console``: a machine's serial console, and what it said there."""

import asyncio
import os
import shutil
from typing import TYPE_CHECKING

import click

from novacron.cli.guest import reached, secrets_namespace
from novacron.cli.options import namespaced_target
from novacron.cli.session import run
from novacron.cli.target import Target
from novacron.cli.terminal import INPUT, Plain, show, signalled
from novacron.cli.wiring import wiring_of

if TYPE_CHECKING:
    from novacron.cli.conversation import Ended
    from novacron.cli.wiring import Guest
    from novacron.runtime.client import Client

__all__ = ["console"]

LOOK_SECONDS = 0.5
# A guest may have left colours on, or hidden the cursor.
AS_BEFORE = b"\x1b[0m\x1b[?25h\r\n"


@click.command()
@click.argument("name")
@click.option("--log", is_flag=True, help="Print what it said so far, and open nothing.")
@click.option("-f", "--follow", is_flag=True, help="With --log, go on with what it says next.")
@click.option(
    "--linger",
    # QEMU looks once a second whether somebody has opened the console.
    type=click.FloatRange(min=1),
    default=2.0,
    show_default=True,
    help="Seconds to listen after the end of input that is not typed.",
)
@secrets_namespace
@namespaced_target
@click.pass_context
def console(
    context: click.Context,
    *,
    target: Target,
    name: str,
    log: bool,
    follow: bool,
    linger: float,
    secrets: str,
) -> None:
    """Talk to a machine on its serial console; Ctrl-] ends.

    Whoever had the console open before loses it. Input may come from a pipe as well.
    """
    if follow and not log:
        raise click.UsageError("--follow goes with --log")
    guests = wiring_of(context).guest

    async def act(client: "Client", current: str) -> int:
        async with reached(guests, client, name, current, secrets) as (guest, host):
            if log:
                return await _tell(guest, follow=follow)
            return await _talk(guest, name, host, linger)

    raise SystemExit(run(target, act))


async def _tell(guest: "Guest", *, follow: bool) -> int:
    """Print what a guest said, as plain text."""
    clean = Plain()
    said = await guest.said()
    show(clean(said.data))
    with signalled() as signal:
        while follow and not signal.done():
            await asyncio.wait({signal}, timeout=LOOK_SECONDS)
            said = await guest.said(said.end)
            show(clean(said.data))
    return 0


async def _talk(guest: "Guest", name: str, host: str, linger: float) -> int:
    from novacron.cli.conversation import converse  # noqa: PLC0415

    typed = os.isatty(INPUT)
    if typed:
        click.echo(f"Console of {name} on host {host}; Ctrl-] ends.", err=True)
    lines = max(shutil.get_terminal_size().lines - 2, 1) if typed else None
    try:
        ended = await converse(guest, lines=lines, linger=linger)
    finally:
        if typed and os.isatty(1):
            show(AS_BEFORE)
    return _farewell(ended, name, typed=typed)


def _farewell(ended: "Ended", name: str, *, typed: bool) -> int:
    from novacron.cli.conversation import End  # noqa: PLC0415

    if ended.why is End.SIGNAL:
        return 128 + ended.signal
    if ended.why is End.GUEST:
        why = "it was switched off, or somebody else opened it"
        click.echo(f"The console of {name} ended: {why}.", err=True)
    elif typed:
        click.echo(f"Left the console of {name}.", err=True)
    return 0
