"""``novacron vm``: virtual machines, one at a time."""

from typing import TYPE_CHECKING

import click

from novacron.cli.failure import Failure
from novacron.cli.follow import follow, in_phase
from novacron.cli.kinds import MACHINE_COLUMNS, MACHINES, fetch, fetch_all, missing
from novacron.cli.migrate import migrate
from novacron.cli.options import Format, namespaced_target, output, timeout, waiting
from novacron.cli.output import Column, show_list, show_object, show_value
from novacron.cli.session import run
from novacron.cli.snapshot import snapshot
from novacron.cli.target import Target

if TYPE_CHECKING:
    from novacron.runtime.client import Client
    from novacron.runtime.resource import Object

__all__ = ["vm"]

NAMESPACE_COLUMN = Column("NAMESPACE", lambda item: item["metadata"]["namespace"])


@click.group()
def vm() -> None:
    """Virtual machines."""


vm.add_command(snapshot)


@vm.command("list")
@click.option("-A", "--all-namespaces", is_flag=True, help="Of all namespaces.")
@output()
@namespaced_target
def list_machines(*, target: Target, all_namespaces: bool, output: Format) -> None:
    """List machines."""
    found = run(
        target,
        lambda client, current: fetch_all(client, MACHINES, None if all_namespaces else current),
    )
    columns = (NAMESPACE_COLUMN, *MACHINE_COLUMNS) if all_namespaces else MACHINE_COLUMNS
    show_list(output, found, columns)


@vm.command()
@click.argument("name")
@output()
@namespaced_target
def get(*, target: Target, name: str, output: Format) -> None:
    """Show one machine."""
    found = run(target, lambda client, current: fetch(client, MACHINES, name, current))
    show_object(output, found, MACHINE_COLUMNS)


@vm.command()
@click.argument("name")
@output()
@namespaced_target
def describe(*, target: Target, name: str, output: Format) -> None:
    """Show all about one machine: fields, conditions, events."""
    from novacron.cli.describe import description, events_of  # noqa: PLC0415

    async def read(client: "Client", current: str) -> "tuple[Object, list[Object]]":
        machine = await fetch(client, MACHINES, name, current)
        return machine, await events_of(client, machine)

    machine, events = run(target, read)
    if output is Format.TABLE:
        click.echo(description(machine, events))
    else:
        show_value(output, {"machine": machine, "events": events})


@vm.command()
@click.argument("name")
@click.option("--image", required=True, help="Where its disk comes from, as a URL.")
@click.option("--cpu", type=int, default=1, show_default=True, help="Virtual CPUs.")
@click.option("--memory", default="1Gi", show_default=True, help="Such as 2Gi.")
@click.option("--disk", default="10Gi", show_default=True, help="Such as 20Gi.")
@click.option("--running/--no-running", default=True, show_default=True, help="Start it.")
@waiting
@namespaced_target
def create(
    *,
    target: Target,
    name: str,
    image: str,
    cpu: int,
    memory: str,
    disk: str,
    running: bool,
    seconds: float | None,
) -> None:
    """Create a machine."""
    size = {"cpu": cpu, "memory": memory, "disk": disk}
    template = {"spec": {"resources": size, "image": {"source": image}}}
    body: Object = {
        "apiVersion": MACHINES.api_version,
        "kind": MACHINES.kind,
        "metadata": {"name": name},
        "spec": {"running": running, "template": template},
    }

    async def act(client: "Client", current: str) -> None:
        await _create(client, body, current)
        click.echo(f"{MACHINES}/{name} created")
        if seconds is not None:
            await _reached(client, name, current, running=running, seconds=seconds)

    run(target, act)


@vm.command()
@click.argument("name")
@waiting
@namespaced_target
def start(*, target: Target, name: str, seconds: float | None) -> None:
    """Start a machine."""
    run(
        target, lambda client, current: _power(client, name, current, running=True, seconds=seconds)
    )
    click.echo(f"{MACHINES}/{name} {'is being started' if seconds is None else 'started'}")


@vm.command()
@click.argument("name")
@waiting
@namespaced_target
def stop(*, target: Target, name: str, seconds: float | None) -> None:
    """Stop a machine."""
    run(
        target,
        lambda client, current: _power(client, name, current, running=False, seconds=seconds),
    )
    click.echo(f"{MACHINES}/{name} {'is being stopped' if seconds is None else 'stopped'}")


@vm.command()
@click.argument("name")
@timeout
@namespaced_target
def restart(*, target: Target, name: str, timeout: float) -> None:
    """Stop a machine, wait until it stands still, and start it again."""

    async def act(client: "Client", current: str) -> None:
        await fetch(client, MACHINES, name, current)
        try:
            await _power(client, name, current, running=False, seconds=timeout)
        finally:
            # Whatever happened on the way, the user asked for a machine that runs.
            await _power(client, name, current, running=True, seconds=None)
        await _reached(client, name, current, running=True, seconds=timeout)

    run(target, act)
    click.echo(f"{MACHINES}/{name} restarted")


@vm.command()
@click.argument("name")
@waiting
@namespaced_target
def delete(*, target: Target, name: str, seconds: float | None) -> None:
    """Delete a machine and all it owns."""

    async def act(client: "Client", current: str) -> None:
        machine = await fetch(client, MACHINES, name, current)
        uid = machine["metadata"]["uid"]
        await client.delete(MACHINES, name, current, uid=uid)
        if seconds is None:
            return

        def gone(item: "Object | None") -> bool:
            # A new machine of the same name is not the one that was deleted.
            return item is None or item["metadata"]["uid"] != uid

        await follow(client, MACHINES, name, current, gone, seconds=seconds)

    run(target, act)
    click.echo(f"{MACHINES}/{name} {'is being deleted' if seconds is None else 'deleted'}")


vm.add_command(migrate)


async def _create(client: "Client", body: "Object", namespace: str) -> None:
    from novacron.runtime.errors import AlreadyExists, NotFound  # noqa: PLC0415

    name = body["metadata"]["name"]
    try:
        await client.create(MACHINES, body, namespace)
    except AlreadyExists as error:
        raise Failure(
            f'a virtual machine "{name}" exists already in namespace "{namespace}"'
        ) from error
    except NotFound as error:
        if "namespaces" in str(error):
            raise Failure(f'no namespace "{namespace}"') from error
        raise missing(MACHINES, "", namespace, error) from error


async def _power(
    client: "Client", name: str, namespace: str, *, running: bool, seconds: float | None
) -> None:
    """Say whether the machine shall run; with a number of seconds, wait until it does."""
    from novacron.runtime.errors import NotFound  # noqa: PLC0415

    try:
        await client.patch(MACHINES, name, {"spec": {"running": running}}, namespace)
    except NotFound as error:
        raise missing(MACHINES, name, namespace, error) from error
    if seconds is not None:
        await _reached(client, name, namespace, running=running, seconds=seconds)


async def _reached(
    client: "Client", name: str, namespace: str, *, running: bool, seconds: float
) -> None:
    phase = "Running" if running else "Stopped"
    await follow(client, MACHINES, name, namespace, in_phase(phase), seconds=seconds)
