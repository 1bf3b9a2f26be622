"""``novacron host``: the hosts that machines run on."""

from typing import TYPE_CHECKING, Any

import click

from novacron.cli.drain import drain, fence, unfence
from novacron.cli.failure import Failure
from novacron.cli.kinds import HOST_COLUMNS, HOSTS, MACHINES, fetch, fetch_all, missing, status
from novacron.cli.options import Format, output, target
from novacron.cli.output import show_list, show_object
from novacron.cli.session import run
from novacron.cli.target import Target

if TYPE_CHECKING:
    from novacron.runtime.client import Client
    from novacron.runtime.resource import Object

__all__ = ["host", "host_body"]

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


@click.group()
def host() -> None:
    """Hosts."""


@host.command()
@click.argument("name")
@click.option("--driver", default="simulation", show_default=True, help="What runs machines there.")
@click.option("--endpoint", help="Where the driver finds it.")
@click.option("--cpu", type=int, default=16, show_default=True, help="CPUs, if simulated.")
@click.option("--memory", default="64Gi", show_default=True, help="Memory, if simulated.")
@click.option("--disk", default="1Ti", show_default=True, help="Disk, if simulated.")
@click.option("--label", multiple=True, help="KEY=VALUE; may be repeated.")
@click.option("--taint", multiple=True, help="KEY[=VALUE]:EFFECT; may be repeated.")
@target
def add(
    *,
    target: Target,
    name: str,
    driver: str,
    endpoint: str | None,
    label: tuple[str, ...],
    taint: tuple[str, ...],
    **capacity: int | str,
) -> None:
    """Declare a host."""
    body = host_body(name, driver, capacity)
    if endpoint:
        body["spec"]["endpoint"] = endpoint
    if label:
        body["spec"]["labels"] = dict(_label(text) for text in label)
    if taint:
        body["spec"]["taints"] = [_taint(text) for text in taint]
    run(target, lambda client, _: _create(client, body))
    click.echo(f"{HOSTS}/{name} added")


def host_body(name: str, driver: str, capacity: dict[str, Any]) -> "Object":
    """Return a Host; a simulated one also says how much room it pretends to have."""
    spec: dict[str, Any] = {"driver": driver}
    if driver == "simulation":
        spec["simulation"] = {"capacity": capacity}
    return {
        "apiVersion": HOSTS.api_version,
        "kind": HOSTS.kind,
        "metadata": {"name": name},
        "spec": spec,
    }


@host.command("list")
@output()
@target
def list_hosts(*, target: Target, output: Format) -> None:
    """List hosts."""
    show_list(output, run(target, lambda client, _: fetch_all(client, HOSTS)), HOST_COLUMNS)


@host.command()
@click.argument("name")
@output()
@target
def get(*, target: Target, name: str, output: Format) -> None:
    """Show one host."""
    show_object(output, run(target, lambda client, _: fetch(client, HOSTS, name)), HOST_COLUMNS)


@host.command()
@click.argument("name")
@target
def cordon(*, target: Target, name: str) -> None:
    """Let no new machines onto a host."""
    run(target, lambda client, _: _mark(client, name, unschedulable=True))
    click.echo(f"{HOSTS}/{name} cordoned")


@host.command()
@click.argument("name")
@target
def uncordon(*, target: Target, name: str) -> None:
    """Let new machines onto a host again, and have no more leave it."""
    run(target, lambda client, _: _mark(client, name, unschedulable=False, drain=None))
    click.echo(f"{HOSTS}/{name} uncordoned")


@host.command()
@click.argument("name")
@target
def remove(*, target: Target, name: str) -> None:
    """Take a host out of use; refused while machines are on it."""

    async def act(client: "Client", _namespace: str) -> None:
        await fetch(client, HOSTS, name)
        if machines := await _machines_on(client, name):
            shown = ", ".join(machines[:5]) + (", …" if len(machines) > 5 else "")
            raise Failure(
                f'host "{name}" still has {len(machines)} machine(s): {shown}; '
                f"move or delete them first"
            )
        await client.delete(HOSTS, name)

    run(target, act)
    click.echo(f"{HOSTS}/{name} removed")


async def _create(client: "Client", body: "Object") -> None:
    from novacron.runtime.errors import AlreadyExists, NotFound  # noqa: PLC0415

    try:
        await client.create(HOSTS, body)
    except AlreadyExists as error:
        raise Failure(f'a host "{body["metadata"]["name"]}" exists already') from error
    except NotFound as error:
        raise missing(HOSTS, "", None, error) from error


async def _machines_on(client: "Client", host: str) -> list[str]:
    """Name the machines that are on a host, or on their way to it."""
    found = await client.list(MACHINES)
    return [
        f"{item['metadata']['namespace']}/{item['metadata']['name']}"
        for item in found
        if host in (status(item).get("nodeName"), _goal(item))
    ]


def _goal(item: "Object") -> str | None:
    """Return where a machine is on its way to."""
    migration = status(item).get("migration") or {}
    return None if migration.get("result") else migration.get("targetNode")


host.add_command(drain)
host.add_command(fence)
host.add_command(unfence)


async def _mark(client: "Client", name: str, **spec: object) -> None:
    await fetch(client, HOSTS, name)
    await client.patch(HOSTS, name, {"spec": spec})


def _label(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise click.BadParameter(f"{text!r} is not KEY=VALUE", param_hint="--label")
    return key, value


def _taint(text: str) -> dict[str, str]:
    mark, _, effect = text.rpartition(":")
    key, _, value = mark.partition("=")
    if not key or effect not in EFFECTS:
        wanted = f"KEY[=VALUE]:EFFECT with EFFECT one of {', '.join(EFFECTS)}"
        raise click.BadParameter(f"{text!r} is not {wanted}", param_hint="--taint")
    return {"key": key, **({"value": value} if value else {}), "effect": effect}
