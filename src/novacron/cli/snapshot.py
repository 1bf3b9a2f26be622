"""``novacron vm snapshot``: snapshots of one machine."""

import datetime as dt
import re
from collections.abc import Callable
from functools import partial
from secrets import token_hex
from typing import TYPE_CHECKING

import click

from novacron.cli.consent import agree
from novacron.cli.failure import Failure
from novacron.cli.follow import follow, state_of
from novacron.cli.kinds import MACHINES, condition, fetch, status
from novacron.cli.options import Format, namespaced_target, output, waiting, yes
from novacron.cli.output import age, show_value, table
from novacron.cli.session import run
from novacron.cli.target import Target

if TYPE_CHECKING:
    from novacron.runtime.client import Client
    from novacron.runtime.resource import Object

__all__ = ["snapshot"]

ATTEMPTS = 5
MOST_REQUESTS = 64
LOST = "SnapshotLost"
TITLES = ("NAME", "CREATED", "AGE", "SIZE", "MEMORY", "QUIESCED", "STATE")
# How the operator begins what it says of one snapshot among others.
SPOKEN_OF = re.compile(r"(?:^|; )snapshot ([^ :]+): ")
BY_SCHEDULE = re.compile(r"snapshot-\d{8}-\d{6}")
Change = Callable[["Object"], "Object | None"]


class _Refused(Failure):
    """The operator says that it cannot be done."""


@click.group()
def snapshot() -> None:
    """Snapshots: of a machine's disks, and of its memory."""


@snapshot.command()
@click.argument("machine")
@click.argument("name", required=False)
@click.option("--memory", is_flag=True, help="The memory too; the machine stands still meanwhile.")
@waiting
@namespaced_target
def create(
    *, target: Target, machine: str, name: str | None, memory: bool, seconds: float | None
) -> None:
    """Take a snapshot; without a name it is called after the time."""
    chosen = name or f"manual-{dt.datetime.now(dt.UTC):%Y%m%d-%H%M%S}"

    if chosen.isdecimal():
        raise Failure("a snapshot needs a name that is not only digits")

    def add(item: "Object") -> "Object":
        if chosen in _there(item):
            raise Failure(f'{machine} has a snapshot "{chosen}" already')
        if chosen in _listed(item):
            # Never taken anew under the same name: it would be another one.
            raise Failure(f'{machine} has lost a snapshot "{chosen}": delete it first')
        return {"snapshots": [*_requests(item, chosen), _entry(chosen, memory=memory)]}

    async def act(client: "Client", current: str) -> None:
        await _change(client, machine, current, add)
        if seconds is None:
            return
        try:
            await _until(
                *(client, machine, current),
                lambda item: chosen in _there(item),
                partial(_trouble, chosen),
                seconds,
            )
        except _Refused:
            # Nobody waits for it any more.
            await _change(
                client, machine, current, lambda item: {"snapshots": _requests(item, chosen)}
            )
            raise

    run(target, act)
    click.echo(f"snapshot {chosen} of {machine} {'asked for' if seconds is None else 'taken'}")


@snapshot.command("list")
@click.argument("machine")
@output()
@namespaced_target
def list_snapshots(*, target: Target, machine: str, output: Format) -> None:
    """List a machine's snapshots, the oldest first."""
    item = run(target, lambda client, current: fetch(client, MACHINES, machine, current))
    found = status(item).get("snapshots") or []
    if output is not Format.TABLE:
        show_value(output, {"machine": machine, "snapshots": found})
    elif found:
        click.echo(table(TITLES, [_row(each) for each in found]))
    else:
        click.echo("none found", err=True)


@snapshot.command()
@click.argument("machine")
@click.argument("name")
@yes
@waiting
@namespaced_target
def restore(*, target: Target, machine: str, name: str, yes: bool, seconds: float | None) -> None:
    """Go back to a snapshot; what was written since is lost."""
    agree(f"Everything written on {machine} since {name} is lost. Go on?", yes=yes)
    request = f"{dt.datetime.now(dt.UTC):%Y%m%dT%H%M%SZ}-{token_hex(3)}"

    def ask(item: "Object") -> "Object":
        _require(item, name, _there(item))
        return {"restore": {"snapshot": name, "request": request}}

    async def act(client: "Client", current: str) -> None:
        await _change(client, machine, current, ask)
        if seconds is None:
            return
        item = await _until(
            client,
            machine,
            current,
            lambda item: (status(item).get("restore") or {}).get("request") == request,
            lambda _: None,
            seconds,
        )
        outcome = status(item)["restore"]
        if not outcome["succeeded"]:
            why = f"{outcome.get('message')} ({outcome.get('reason')})"
            raise Failure(f"{machine} was not brought back to {name}: {why}")

    run(target, act)
    word = "is being brought" if seconds is None else "was brought"
    click.echo(f"{machine} {word} back to snapshot {name}")


@snapshot.command()
@click.argument("machine")
@click.argument("name")
@waiting
@namespaced_target
def delete(*, target: Target, machine: str, name: str, seconds: float | None) -> None:
    """Delete a snapshot, or no longer ask for it."""

    def discard(item: "Object") -> "Object":
        if name not in _asked_for(item):
            _require(item, name, _listed(item))
        return {"snapshots": [*_requests(item, name), {"name": name, "discard": True}]}

    async def act(client: "Client", current: str) -> bool:
        was_there = name in _listed(await _change(client, machine, current, discard))
        if was_there and seconds is not None:
            await _until(
                *(client, machine, current),
                lambda item: name not in _listed(item),
                partial(_trouble, name),
                seconds,
            )
            await _change(client, machine, current, _tidied)
        return was_there

    if not run(target, act):
        # The request to discard stays: it may be taken at this very moment.
        word = "was not taken yet, and is not asked for any more"
    else:
        word = "is being deleted" if seconds is None else "deleted"
    click.echo(f"snapshot {name} of {machine} {word}")


async def _change(client: "Client", machine: str, namespace: str, change: Change) -> "Object":
    """Change the spec by what it says now, and return the machine as it was before that.

    Whoever else changes it meanwhile is not undone.
    """
    from novacron.runtime.errors import Conflict  # noqa: PLC0415

    attempts = ATTEMPTS
    while True:
        attempts -= 1
        item = await fetch(client, MACHINES, machine, namespace)
        spec = change(item)
        if spec is None:
            return item
        version = item["metadata"]["resourceVersion"]
        patch = {"metadata": {"resourceVersion": version}, "spec": spec}
        try:
            await client.patch(MACHINES, machine, patch, namespace)
        except Conflict:
            if not attempts:
                raise
        else:
            return item


async def _until(
    client: "Client",
    machine: str,
    namespace: str,
    reached: "Callable[[Object], bool]",
    fails: "Callable[[Object], str | None]",
    seconds: float,
) -> "Object":
    def settled(item: "Object | None") -> bool:
        if item is None:
            raise Failure(f"{machine} was deleted meanwhile")
        if reached(item):
            return True
        if why := fails(item):
            raise _Refused(why)
        return False

    found = await follow(
        client, MACHINES, machine, namespace, settled, seconds=seconds, state=_progress
    )
    assert found is not None
    return found


def _trouble(name: str, item: "Object") -> str | None:
    """Return why nothing comes of a request; what is said of other snapshots does not count."""
    claim = condition(item, "Snapshotted")
    seen = status(item).get("observedGeneration") == item["metadata"]["generation"]
    if not seen or claim.get("status") != "False" or claim.get("reason") == LOST:
        return None
    message = claim.get("message") or ""
    about = SPOKEN_OF.findall(message)
    return None if about and name not in about else f"{message} ({claim.get('reason')})"


def _progress(item: "Object | None") -> str:
    claim = condition(item, "Snapshotted") if item else {}
    return claim.get("message") or state_of(item)


def _there(item: "Object") -> list[str]:
    return [each["name"] for each in status(item).get("snapshots") or () if not each.get("lost")]


def _listed(item: "Object") -> list[str]:
    """Return the names on record, those of lost ones too: they stay until somebody deletes them."""
    return [each["name"] for each in status(item).get("snapshots") or ()]


def _asked_for(item: "Object") -> list[str]:
    """Return the names of snapshots that are asked for, taken or not."""
    requests = item["spec"].get("snapshots") or ()
    return [each["name"] for each in requests if not each.get("discard")]


def _require(item: "Object", name: str, known: list[str]) -> None:
    if name not in known:
        machine = item["metadata"]["name"]
        have = f"it has {', '.join(known)}" if known else "it has none"
        raise Failure(f'{machine} has no snapshot "{name}"; {have}')


def _requests(item: "Object", name: str) -> "list[Object]":
    """Return the requests without one about this name, and without those that are history."""
    there = _there(item)
    kept = [
        each
        for each in item["spec"].get("snapshots") or ()
        if each["name"] != name and not (each.get("discard") and each["name"] not in there)
    ]
    taken = [each for each in kept if each["name"] in there and not each.get("discard")]
    # What was taken stays when its request goes, so the oldest make room.
    too_many = max(len(kept) + 1 - MOST_REQUESTS, 0)
    return [each for each in kept if each not in taken[:too_many]]


def _tidied(item: "Object") -> "Object | None":
    requests = _requests(item, "")
    return None if requests == (item["spec"].get("snapshots") or []) else {"snapshots": requests}


def _entry(name: str, *, memory: bool) -> "Object":
    return {"name": name, **({"memory": True} if memory else {})}


def _row(each: "Object") -> list[object]:
    lost, scheduled = each.get("lost"), BY_SCHEDULE.fullmatch(each["name"])
    return [
        each["name"],
        each.get("createdAt"),
        age(each.get("createdAt")),
        each.get("size"),
        "yes" if each.get("memory") else "no",
        "yes" if each.get("quiesced") else "no",
        "lost" if lost else "scheduled" if scheduled else "on demand",
    ]
