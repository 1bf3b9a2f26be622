"""``novacron volume``: disks beside the first, those of machines and those that were kept."""

from typing import TYPE_CHECKING, Any

import click

from novacron.cli.consent import agree
from novacron.cli.failure import Failure
from novacron.cli.guest import hint, secrets_namespace
from novacron.cli.kinds import HOSTS, MACHINES, fetch, fetch_all, status
from novacron.cli.options import Format, namespaced_target, output, yes
from novacron.cli.output import Column, show_list
from novacron.cli.session import run
from novacron.cli.target import Target
from novacron.cli.wiring import wiring_of

if TYPE_CHECKING:
    from novacron.cli.wiring import HostVolumes
    from novacron.runtime.client import Client
    from novacron.runtime.resource import Object

__all__ = ["volume"]

# A disk that no machine has to do with any more.
KEPT = "Kept"
COLUMNS = tuple(
    Column(title.upper(), lambda item, key=key: item.get(key))  # type: ignore[misc]
    for title, key in (
        ("volume", "id"),
        ("size", "size"),
        ("class", "storageClass"),
        ("host", "host"),
        ("state", "state"),
        ("machine", "machine"),
    )
)


@click.group()
def volume() -> None:
    """Disks beside the first one."""


@volume.command("list")
@output()
@namespaced_target
def list_volumes(*, target: Target, output: Format) -> None:
    """List the volumes of a namespace, also those whose machine is gone."""
    show_list(output, run(target, _volumes), COLUMNS)


@volume.command()
@click.argument("name")
@yes
@secrets_namespace
@namespaced_target
@click.pass_context
def delete(context: click.Context, *, target: Target, name: str, yes: bool, secrets: str) -> None:
    """Delete a volume and all its data, by the name that the list tells.

    Only one that no machine has. This machine needs a way to the volume's host.
    """
    agree(f"Delete {name} with all its data?", yes=yes)
    keeping = wiring_of(context).volumes
    run(target, lambda client, space: _delete(client, space, name, keeping, secrets))
    click.echo(f"volume {name} deleted")


async def _volumes(client: "Client", namespace: str) -> list["Object"]:
    found: list[dict[str, Any]] = []
    for machine in await fetch_all(client, MACHINES, namespace):
        where = {
            "machine": machine["metadata"]["name"],
            "host": status(machine).get("nodeName"),
        }
        found += [{**each, **where} for each in status(machine).get("volumes") or ()]
    ids = {each["id"] for each in found}
    for host in await fetch_all(client, HOSTS):
        kept = {"host": host["metadata"]["name"], "state": KEPT}
        found += [
            {**each, **kept}
            for each in status(host).get("keptVolumes") or ()
            if each["namespace"] == namespace and each["id"] not in ids
        ]
    return sorted(found, key=lambda each: str(each["id"]))


async def _delete(
    client: "Client", namespace: str, name: str, keeping: "HostVolumes", secrets: str
) -> None:
    from novacron.core.errors import DriverError, Unreachable  # noqa: PLC0415

    # Whoever asks for it by its name may be about to have it, on this host or on another.
    for machine in await fetch_all(client, MACHINES, namespace):
        wanted = machine["spec"]["template"]["spec"].get("volumes") or ()
        if any(each.get("existing") == name for each in wanted):
            raise Failure(f"{machine['metadata']['name']} asks for {name}: take it off that first")
    found = [each for each in await _volumes(client, namespace) if each["id"] == name]
    if not found:
        raise Failure(f"there is no volume {name} in namespace {namespace}")
    if held := [each for each in found if each["state"] not in (KEPT, "Detached")]:
        raise Failure(f"{held[0]['machine']} has {name}: take it off that machine first")
    host = found[0]["host"]
    try:
        await keeping(client, host, namespace, name, secrets)
    except Unreachable as error:
        declared = await fetch(client, HOSTS, host)
        raise Failure(f"{error}{hint(declared, str(error))}") from error
    except DriverError as error:
        raise Failure(str(error)) from error
