"""``novacron host drain``, ``fence``, ``unfence``: machines leave, in peace or after a failure."""

from typing import TYPE_CHECKING

import click

from novacron.cli.consent import agree
from novacron.cli.failure import Failure
from novacron.cli.follow import follow
from novacron.cli.kinds import (
    HOSTS,
    MACHINES,
    OUT_OF_SERVICE,
    condition,
    fetch,
    fetch_all,
    status,
)
from novacron.cli.options import target, waiting, yes
from novacron.cli.session import run
from novacron.cli.target import Target

if TYPE_CHECKING:
    from novacron.runtime.client import Client
    from novacron.runtime.resource import Object

__all__ = ["drain", "fence", "unfence"]

FENCED = {"key": OUT_OF_SERVICE, "effect": "NoExecute"}
UNMOVED = ("Refused", "Failed")
SHOWN = 5


@click.command()
@click.argument("name")
@click.option(
    "--stop-allowed",
    is_flag=True,
    help="Stop machines that cannot move while they run, and start them elsewhere.",
)
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
    """Move all machines away from a host; uncordon ends it.

    No new ones come meanwhile, nor once it is drained. Machines that cannot move stay and say why.
    """
    spec = {"unschedulable": True, "drain": {"stopAllowed": stop_allowed, "atOnce": at_once}}

    async def act(client: "Client", _namespace: str) -> None:
        await fetch(client, HOSTS, name)
        await client.patch(HOSTS, name, {"spec": spec})
        if seconds is None:
            return
        try:
            await follow(client, HOSTS, name, None, _drained, seconds=seconds, state=_progress)
        except Failure as failure:
            said = [f"{name} is not drained after {seconds:g} s", *await _staying(client, name)]
            raise Failure("\n  ".join(said)) from failure

    run(target, act)
    click.echo(f"{HOSTS}/{name} {'is being drained' if seconds is None else 'drained'}")


def _drained(item: "Object | None") -> bool:
    """Say whether a host is drained; what was said before is of another drain."""
    return item is None or (_is_heard(item) and condition(item, "Drained").get("status") == "True")


def _is_heard(item: "Object") -> bool:
    seen = status(item).get("observedGeneration") or 0
    return bool(seen >= item["metadata"]["generation"])


async def _staying(client: "Client", host: str) -> list[str]:
    """Say of the machines that could not leave a host why that is."""
    told = []
    for item in await fetch_all(client, MACHINES):
        migration = status(item).get("migration") or {}
        if status(item).get("nodeName") == host and migration.get("result") in UNMOVED:
            about = item["metadata"]
            told.append(f"{about['namespace']}/{about['name']}: {migration.get('message')}")
    more = [f"… and {len(told) - SHOWN} more"] if len(told) > SHOWN else []
    return [*told[:SHOWN], *more]


def _progress(item: "Object | None") -> str:
    if item is None:
        return "removed"
    said = condition(item, "Drained").get("message") if _is_heard(item) else None
    return said or "not looked at yet"


@click.command()
@click.argument("name")
@yes
@target
def fence(*, target: Target, name: str, yes: bool) -> None:
    """Say that a host is off and stays so.

    For whoever switched it off, a person or a program. Machines whose disks other hosts reach
    begin anew there once it was silent for a while.
    """
    agree(f"Were {name} not off, its machines would run twice. Is it switched off?", yes=yes)

    async def act(client: "Client", _namespace: str) -> None:
        host = await fetch(client, HOSTS, name)
        taints = [*_others(host["spec"].get("taints")), FENCED]
        await client.patch(HOSTS, name, {"spec": {"taints": taints}})

    run(target, act)
    click.echo(f"{HOSTS}/{name} is taken for switched off")


@click.command()
@click.argument("name")
@target
def unfence(*, target: Target, name: str) -> None:
    """Say that a host is back: it may have machines again."""

    async def act(client: "Client", _namespace: str) -> None:
        host = await fetch(client, HOSTS, name)
        own = host["spec"].get("taints") or []
        if (taints := _others(own)) != own:
            await client.patch(HOSTS, name, {"spec": {"taints": taints}})
        marks = (status(host).get("node") or {}).get("taints") or []
        if _others(marks) != marks:
            node = host["spec"]["nodeRef"]["name"]
            undo = f"kubectl taint node {node} {OUT_OF_SERVICE}-"
            raise Failure(f"{name} is still taken for switched off, as its Node says: {undo}")
        if taints == own:
            raise Failure(f"{name} is not taken for switched off")

    run(target, act)
    click.echo(f"{HOSTS}/{name} is not taken for switched off any more")


def _others(taints: "list[Object] | None") -> "list[Object]":
    """Return all taints but that of a host that is off."""
    return [taint for taint in taints or () if taint["key"] != OUT_OF_SERVICE]
