"""``novacron vm migrate``: asks for a machine to be moved, or not to be moved any further."""

from typing import TYPE_CHECKING, Any

import click

from novacron.cli.failure import Failure
from novacron.cli.follow import follow
from novacron.cli.kinds import HOSTS, MACHINES, condition, fetch, named, status
from novacron.cli.options import namespaced_target, waiting
from novacron.cli.session import run
from novacron.cli.target import Target

if TYPE_CHECKING:
    from novacron.runtime.client import Client
    from novacron.runtime.resource import Object

__all__ = ["migrate"]

MIGRATE_TO = "novacron.io/migrate-to"
STOP_ALLOWED = "novacron.io/migrate-stop-allowed"
MIGRATE_CANCEL = "novacron.io/migrate-cancel"
RECORD = "novacron.io/move"
ANYWHERE = "any"


@click.command()
@click.argument("name")
@click.option("--to", metavar="HOST", help="Which host or node; without it, the best.")
@click.option("--cancel", is_flag=True, help="End its move, and take back what was asked.")
@click.option(
    "--stop-allowed",
    is_flag=True,
    help="If it cannot move while it runs, stop it, and start it there.",
)
@waiting
@namespaced_target
def migrate(
    *,
    target: Target,
    name: str,
    to: str | None,
    cancel: bool,
    stop_allowed: bool,
    seconds: float | None,
) -> None:
    """Move a machine to another host, or have it stay where it is.

    It moves while it runs, or while it is off. machine/NAME is one of the Viti Stack, which moves
    to another node of its cluster. What is asked for amid a move is done once that is over.
    """
    if cancel and (to or stop_allowed):
        raise click.UsageError("--cancel takes neither --to nor --stop-allowed")
    resource, name = named(name)

    async def act(client: "Client", current: str) -> "Object | None":
        before = await fetch(client, resource, name, current)
        if to is not None and resource is MACHINES:
            await fetch(client, HOSTS, to)
        (_require_move if cancel else _require_host)(before)
        words = _withdrawn(before) if cancel else _asked(before, to, stop_allowed=stop_allowed)
        await client.patch(resource, name, {"metadata": {"annotations": words}}, current)
        if seconds is None:
            return None
        click.echo(f"{resource}/{name} is asked to {'stay' if cancel else 'move'}", err=True)
        return await follow(client, resource, name, current, _answered, seconds=seconds)

    moved = run(target, act)
    if seconds is None:
        click.echo(f"{resource}/{name} is asked to {'stay' if cancel else 'move'}")
    elif moved is None:
        raise Failure(f"{name} was deleted")
    else:
        _tell(f"{resource}/{name}", status(moved).get("migration") or {}, to, cancel=cancel)


def _asked(machine: "Object", to: str | None, *, stop_allowed: bool) -> dict[str, str | None]:
    """Return what to write so that the machine moves; it waits for the end of a move under way."""
    words = {MIGRATE_TO: to or ANYWHERE, STOP_ALLOWED: "true" if stop_allowed else None}
    # That such a move was cancelled stays so: it is not what is asked for now.
    return words if _moves(machine) else {**words, MIGRATE_CANCEL: None}


def _withdrawn(machine: "Object") -> dict[str, str | None]:
    """Return what to write so that the machine stays, also when the move under way is over.

    A request that nobody has decided on is left to whoever answers it, and says so.
    """
    words: dict[str, str | None] = {MIGRATE_CANCEL: "true"}
    return {**words, MIGRATE_TO: None, STOP_ALLOWED: None} if _moves(machine) else words


def _require_move(machine: "Object") -> None:
    if not _under_way(machine):
        raise Failure(f"{machine['metadata']['name']} does not move")


def _require_host(machine: "Object") -> None:
    """Fail where nobody would answer; of machines of the Viti Stack the operator itself says so."""
    ours = machine["apiVersion"] == MACHINES.api_version
    if ours and not status(machine).get("nodeName"):
        why = condition(machine, "Placed").get("message") or "it waits to be placed"
        raise Failure(f"{machine['metadata']['name']} has no host that it could leave: {why}")


def _under_way(item: "Object") -> bool:
    return MIGRATE_TO in (item["metadata"].get("annotations") or {}) or _moves(item)


def _moves(item: "Object") -> bool:
    """Say whether a move was decided on and is not over.

    Whoever replaces the object takes the record away; a move that we have begun is in its status.
    """
    told = status(item).get("migration") or {}
    begun = "mode" in told and "result" not in told
    return begun or RECORD in (item["metadata"].get("annotations") or {})


def _answered(item: "Object | None") -> bool:
    """Say whether the request was answered: nothing asks any more, and nothing is under way."""
    return item is None or not _under_way(item)


def _tell(machine: str, migration: dict[str, Any], to: str | None, *, cancel: bool) -> None:
    result = migration.get("result")
    if result == "Succeeded":
        if to not in (None, migration["targetNode"]):
            raise Failure(f"{machine} moved to {migration['targetNode']}, and not to {to}")
        took = []
        if (sent := migration.get("transferredBytes")) is not None:
            took.append(f"{sent / 1e6:.1f} MB sent")
        if (downtime := migration.get("downtimeMilliseconds")) is not None:
            took.append(f"{downtime} ms of standstill")
        about = f" ({', '.join(took)})" if took else ""
        click.echo(f"{machine} moved to {migration['targetNode']}{about}")
    elif cancel and result == "Cancelled":
        click.echo(f"{machine} stays on {migration['sourceNode']}")
    else:
        why = migration.get("message") or migration.get("reason") or "nobody says why"
        raise Failure(f"{machine} stays on {migration.get('sourceNode')}: {why}")
