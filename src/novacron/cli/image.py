"""``novacron image``: the images that machines can be made from by name."""

from typing import TYPE_CHECKING, Any

import click

from novacron.cli.kinds import OPERATOR_NAMESPACE
from novacron.cli.options import Format, output, target
from novacron.cli.output import show_value, table
from novacron.cli.session import run
from novacron.cli.target import Target

if TYPE_CHECKING:
    from novacron.images import Catalogue, Entry
    from novacron.runtime.client import Client

__all__ = ["image"]

TITLES = ("NAME", "USER", "CPU", "MEMORY", "DISK", "FROM", "DESCRIPTION")


@click.group()
def image() -> None:
    """Images."""


@image.command("list")
@click.option(
    "--operator-namespace",
    default=OPERATOR_NAMESPACE,
    show_default=True,
    help="Where the operator's ConfigMap with more images is.",
)
@click.option("--catalogue", default="novacron-images", show_default=True, help="Its name.")
@output()
@target
def list_images(
    *, target: Target, output: Format, operator_namespace: str, catalogue: str
) -> None:  # fmt: skip
    """List the images of ``marketplace://``.

    Those that come with us and those of the cluster.
    """

    async def act(client: "Client", _: str) -> "Catalogue":
        return await _known(client, catalogue, operator_namespace)

    entries = [entry for _, entry in sorted(run(target, act).entries.items())]
    if output is Format.TABLE:
        click.echo(table(TITLES, [_row(entry) for entry in entries]))
    else:
        show_value(output, {"images": [_fields(entry) for entry in entries]})


async def _known(client: "Client", name: str, namespace: str) -> "Catalogue":
    """Return all images by name, or those that come with us where the cluster's are not shown."""
    from novacron.cli.failure import Failure  # noqa: PLC0415
    from novacron.controllers.catalogue import FORBIDDEN, catalogue_of  # noqa: PLC0415 - heavy
    from novacron.core.errors import DriverError  # noqa: PLC0415
    from novacron.images import shipped  # noqa: PLC0415

    try:
        return await catalogue_of(client, name, namespace)
    except DriverError as error:
        if error.reason != FORBIDDEN:
            raise Failure(str(error)) from error
        click.echo(f"note: what the cluster itself adds is not shown: {error}", err=True)
        return shipped()


def _row(entry: "Entry") -> tuple[object, ...]:
    fields = _fields(entry)
    names = ("name", "user", "cpu", "memory", "disk", "from", "description")
    return tuple(fields.get(name) for name in names)


def _fields(entry: "Entry") -> dict[str, Any]:
    from novacron.core.quantity import format_mib  # noqa: PLC0415

    least = entry.minimum
    fields = {
        "name": entry.name,
        "source": f"marketplace://{entry.name}",
        "description": entry.description,
        "url": entry.url,
        "checksum": entry.checksum,
        "checksumFile": entry.checksum_file,
        "format": entry.format,
        "user": entry.user,
        "cpu": least.vcpus or None,
        "memory": format_mib(least.memory_mib) if least.memory_mib else None,
        "disk": format_mib(least.disk_mib) if least.disk_mib else None,
        "from": entry.origin,
    }
    return {name: value for name, value in fields.items() if value not in (None, "")}
