"""``novacron vnc``: where a machine's screen is, and a way to it."""

import os
from ipaddress import ip_address
from typing import TYPE_CHECKING

import click

from novacron.cli.failure import Failure
from novacron.cli.guest import reached, secrets_namespace
from novacron.cli.options import Format, namespaced_target, output
from novacron.cli.session import run
from novacron.cli.target import Target
from novacron.cli.wiring import wiring_of

if TYPE_CHECKING:
    from novacron.cli.wiring import Guest
    from novacron.core.driver import Display
    from novacron.runtime.client import Client

__all__ = ["vnc"]

ANY_PORT = "127.0.0.1:0"


class LoopbackAddress(click.ParamType[tuple[str, int]]):
    """Where to listen: a port, perhaps with an address of this machine before it."""

    name = "address"

    def convert(
        self,
        value: str | tuple[str, int],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[str, int]:
        """Read the text; a value that was read before stays as it is."""
        if isinstance(value, tuple):
            return value
        address, _, port = value.rpartition(":")
        address = address.strip("[]").replace("localhost", "127.0.0.1") or "127.0.0.1"
        try:
            near, number = ip_address(address).is_loopback, int(port)
        except ValueError:
            near, number = False, -1
        if number not in range(65536):
            self.fail(f"{value!r} is no ADDRESS:PORT such as 127.0.0.1:5901", param, ctx)
        if not near:
            self.fail("a screen asks for no password, so only this machine may have it", param, ctx)
        return address, number


@click.command()
@click.argument("name")
@click.option(
    "--proxy",
    type=LoopbackAddress(),
    is_flag=False,
    flag_value=ANY_PORT,
    metavar="[ADDRESS:PORT]",
    help="Listen on this machine and carry viewers to the screen; put it after NAME.",
)
@output()
@secrets_namespace
@namespaced_target
@click.pass_context
def vnc(
    context: click.Context,
    *,
    target: Target,
    name: str,
    proxy: tuple[str, int] | None,
    output: Format,
    secrets: str,
) -> None:
    """Tell where a machine's screen is, and how to look at it."""
    guests = wiring_of(context).guest

    async def act(client: "Client", current: str) -> None:
        async with reached(guests, client, name, current, secrets) as (guest, host):
            display = await guest.display()
            if proxy is None:
                _tell(name, host, display, output)
            elif display.near:
                await _carry(guest, name, proxy)
            else:
                raise Failure(f"{name}: {_far(host, display)}")

    run(target, act)


def _tell(name: str, host: str, display: "Display", output: Format) -> None:
    if not display.address:
        click.echo(f"The screen of {name} is behind the cluster's API; to have it here, type:")
        click.echo(f"  novacron vnc {name} --proxy")
        return
    seen = f"{display.address}:{display.port}"
    if output is not Format.TABLE:
        from novacron.cli.output import show_value  # noqa: PLC0415

        there = {"host": host, "address": display.address, "port": display.port}
        tunnel = {"tunnel": display.tunnel} if display.tunnel else {}
        show_value(output, there | tunnel)
        return
    click.echo(f"The screen of {name} is at {seen} on host {host}.")
    if display.near:
        click.echo(f"There, type:       {_viewer(display.address, display.port)}")
        click.echo(f"From here as well: novacron vnc {name} --proxy")
    else:
        click.echo(_far(host, display))


def _far(host: str, display: "Display") -> str:
    if display.tunnel is None:
        return (
            f"host {host} is reached over TLS, which carries no screens: "
            f"look at {display.address}:{display.port} on the host itself"
        )
    viewer = _viewer("127.0.0.1", display.port)
    return f"to have it here, type `{display.tunnel}`, and then `{viewer}`"


async def _carry(guest: "Guest", name: str, proxy: tuple[str, int]) -> None:
    from novacron.cli.relay import relay  # noqa: PLC0415

    address, port = proxy

    def listening(port: int) -> None:
        click.echo(f"The screen of {name}: {_viewer(address, port)}\nCtrl-C ends.")

    try:
        await relay(
            address,
            port,
            guest.open_display,
            listening=listening,
            trouble=lambda text: click.echo(f"error: {text}", err=True),
        )
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise Failure(f"cannot listen on {address}:{port}: {why}") from error


def _viewer(address: str, port: int) -> str:
    # Two colons: with one, many viewers count displays, not ports.
    return f"vncviewer {address}::{port}"
