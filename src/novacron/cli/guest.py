"""The guest behind a machine that the user names, reached with the user's own rights."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from novacron.cli.failure import Failure
from novacron.cli.follow import state_of
from novacron.cli.kinds import HOSTS, OPERATOR_NAMESPACE, VITI_MACHINES, fetch, named, status

if TYPE_CHECKING:
    from novacron.cli.wiring import Guest, Guests
    from novacron.runtime.client import Client
    from novacron.runtime.resource import Object

__all__ = ["hint", "reached", "secrets_namespace"]

secrets_namespace = click.option(
    "--operator-namespace",
    "secrets",
    default=OPERATOR_NAMESPACE,
    show_default=True,
    help="Where the Secrets are that hosts over TLS or ssh name.",
)


@asynccontextmanager
async def reached(
    guests: "Guests", client: "Client", name: str, namespace: str, secrets: str
) -> "AsyncIterator[tuple[Guest, str]]":
    """Give the guest and the name of its host, and turn what its host refuses into sentences."""
    from novacron.core.errors import DriverError, Unreachable  # noqa: PLC0415

    resource, name = named(name)
    machine = await fetch(client, resource, name, namespace)
    host = status(machine).get("nodeName")
    if not host:
        raise Failure(f"{name} runs on no host now; it is {state_of(machine)}")
    # Machines of the Viti Stack are on nodes of their cluster, which nobody declared.
    in_cluster = resource is VITI_MACHINES
    declared = _cluster(machine) if in_cluster else await fetch(client, HOSTS, host)
    try:
        async with guests(client, machine, secrets) as guest:
            if guest is None:
                driver = declared["spec"]["driver"]
                raise Failure(f"{name} has no console: its host {host} is of driver {driver}")
            yield guest, host
    except Unreachable as error:
        raise Failure(f"{error}{hint(declared, str(error))}") from error
    except DriverError as error:
        if error.reason == "NotRunning":
            start = (
                f'kubectl patch machine {name} --type merge -p \'{{"spec":{{"running":true}}}}\''
            )
            how = start if in_cluster else f"novacron vm start {name}"
            raise Failure(f"{name} is off; start it with `{how}`") from error
        raise Failure(f"{name}: {error}") from error


def _cluster(machine: "Object") -> "Object":
    """Return the cluster that a machine of the Viti Stack is in, in the words of a Host."""
    return {"spec": {"driver": "kubevirt", "endpoint": status(machine).get("provider")}}


def hint(host: "Object", why: str) -> str:
    """Return what may help where there is no way to a host at all."""
    endpoint = host["spec"].get("endpoint") or ""
    if urlsplit(endpoint).netloc or "cannot be reached" not in why:
        return ""
    return f"; {endpoint} is a socket on the operator's own machine: call this there"
