"""``novacron host drain`` and ``fence``: hosts that machines leave, in peace or after a failure."""

from typing import TYPE_CHECKING

import click

from novacron.cli.follow import follow
from novacron.cli.kinds import HOSTS, condition, fetch
from novacron.cli.options import target, waiting, yes
from novacron.cli.session import run
from novacron.cli.target import Target

if TYPE_CHECKING:
    from novacron.runtime.client import Client
    from novacron.runtime.resource import Object

__all__ = ["drain", "fence"]

OUT_OF_SERVICE = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}


@click.command()
@click.argument("name")
@click.option("--stop-allowed", is_flag=True, help="Stop machines that cannot move while they run.")
@click.option(
    "--at-once",
    type=click.IntRange(1, 64),
    default=2,
    show_default=True,
    help="How many leave at the same time.",
)
@waiting
@target
def drain(
    *, target: Target, name: str, stop_allowed: bool, at_once: int, seconds: float | None
) -> None:
    """Move all machines away from a host and let no new ones in; uncordon ends it."""
    spec = {"unschedulable": True, "drain": {"stopAllowed": stop_allowed, "atOnce": at_once}}

    async def act(client: "Client", _namespace: str) -> None:
        await fetch(client, HOSTS, name)
        await client.patch(HOSTS, name, {"spec": spec})
        if seconds is not None:
            await follow(client, HOSTS, name, None, _drained, seconds=seconds, state=_progress)

    run(target, act)
    click.echo(f"{HOSTS}/{name} {'is being drained' if seconds is None else 'drained'}")


def _drained(item: "Object | None") -> bool:
    return item is None or condition(item, "Drained").get("status") == "True"


def _progress(item: "Object | None") -> str:
    if item is None:
        return "removed"
    return condition(item, "Drained").get("message") or "not looked at yet"


@click.command()
@click.argument("name")
@yes
@target
def fence(*, target: Target, name: str, yes: bool) -> None:
    """Say that a host is off and stays so: its machines may begin anew elsewhere.

    For whoever switched it off, a person or a program. Machines whose disks other hosts reach
    are started there once it was silent for a while.
    """
    if not yes:
        click.confirm(
            f"Is {name} really switched off? Were it not, its machines would run twice", abort=True
        )

    async def act(client: "Client", _namespace: str) -> None:
        host = await fetch(client, HOSTS, name)
        taints = [
            taint
            for taint in host["spec"].get("taints") or ()
            if taint["key"] != OUT_OF_SERVICE["key"]
        ]
        await client.patch(HOSTS, name, {"spec": {"taints": [*taints, OUT_OF_SERVICE]}})

    run(target, act)
    click.echo(f"{HOSTS}/{name} is taken for switched off")
