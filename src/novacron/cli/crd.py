"""``novacron crd``: the kinds we add to a cluster."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from novacron.cli.failure import Failure
from novacron.cli.options import (
    USUAL_MINIMUM_MEMORY,
    Format,
    families,
    minimum_memory,
    output,
    target,
)
from novacron.cli.session import run
from novacron.cli.target import Target
from novacron.cli.wiring import Definitions, wiring_of
from novacron.runtime.resource import Resource

if TYPE_CHECKING:
    from novacron.runtime.client import Client

__all__ = ["MINIMUM_MEMORY_NOTE", "crd", "install_crds"]

# Written on a definition that was installed with another minimum than the usual one.
MINIMUM_MEMORY_NOTE = "novacron.io/minimum-memory"

DEFINITIONS = Resource(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    namespaced=False,
)
ESTABLISHED_WITHIN_SECONDS = 30.0


@click.group()
def crd() -> None:
    """The kinds that NovaCron adds to a cluster."""


@crd.command("print")
@families
@minimum_memory()
@output(default=Format.YAML)
@click.pass_context
def print_crds(
    context: click.Context, *, families: Sequence[str], minimum_memory: str, output: Format
) -> None:
    """Print the custom resource definitions."""
    manifests = wiring_of(context).crds(families, minimum_memory)
    if output is Format.JSON:
        from novacron.cli.output import show_value  # noqa: PLC0415

        show_value(output, {"apiVersion": "v1", "kind": "List", "items": manifests})
    elif output is Format.YAML:
        from novacron.crd.manifest import to_yaml  # noqa: PLC0415 - heavy

        click.echo(to_yaml(*manifests), nl=False)
    else:
        click.echo("\n".join(manifest["metadata"]["name"] for manifest in manifests))


@crd.command()
@families
@minimum_memory(None)
@target
@click.pass_context
def install(
    context: click.Context, *, target: Target, families: Sequence[str], minimum_memory: str | None
) -> None:
    """Install the definitions, or bring them up to date."""
    crds = wiring_of(context).crds

    async def installed(client: "Client", _: str) -> list[dict[str, Any]]:
        if minimum_memory is not None:
            manifests = crds(families, minimum_memory)
        else:
            manifests = await _with_the_minimum_kept(client, crds, families)
        await install_crds(client, manifests)
        return manifests

    for manifest in run(target, installed):
        click.echo(f"{manifest['metadata']['name']} installed")


async def _with_the_minimum_kept(
    client: "Client", crds: Definitions, families: Sequence[str]
) -> list[dict[str, Any]]:
    """Return the definitions with the least memory that those in the cluster have.

    An upgrade is not a change of settings: a cluster with small guests keeps taking them.
    """
    from novacron.runtime.errors import NotFound  # noqa: PLC0415

    usual = crds(families, USUAL_MINIMUM_MEMORY)
    for manifest in usual:
        with suppress(NotFound):
            there = await client.get(DEFINITIONS, manifest["metadata"]["name"])
            if kept := (there["metadata"].get("annotations") or {}).get(MINIMUM_MEMORY_NOTE):
                return crds(families, kept)
    return usual


async def install_crds(client: "Client", manifests: Sequence[dict[str, Any]]) -> None:
    """Apply the definitions and wait until the server serves them."""
    for manifest in manifests:
        await client.apply(DEFINITIONS, manifest)
    names = [manifest["metadata"]["name"] for manifest in manifests]
    try:
        await asyncio.wait_for(_established(client, names), ESTABLISHED_WITHIN_SECONDS)
    except TimeoutError as error:
        raise Failure("the API server did not take our definitions into use") from error


async def _established(client: "Client", names: Sequence[str]) -> None:
    waiting = list(names)
    while waiting:
        definition = await client.get(DEFINITIONS, waiting[0])
        if _is_established(definition):
            waiting.pop(0)
        else:
            await asyncio.sleep(0.1)


def _is_established(definition: dict[str, Any]) -> bool:
    conditions = (definition.get("status") or {}).get("conditions") or ()
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)
