"""One connection to the cluster the user means, and answers in the user's words."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

from novacron.cli.failure import Failure
from novacron.cli.target import Target

if TYPE_CHECKING:
    from novacron.runtime.client import Client

__all__ = ["connected", "run"]

T = TypeVar("T")

# What an API server says when a webhook that must agree cannot be asked.
CLOSED = "failed calling webhook"


def run(target: Target, action: "Callable[[Client, str], Awaitable[T]]") -> T:
    """Run an action with a client and the namespace to work in."""

    async def connect_and_act() -> T:
        async with connected(target) as client:
            return await action(client, target.namespace or client.connection.namespace)

    return asyncio.run(connect_and_act())


@asynccontextmanager
async def connected(target: Target) -> "AsyncIterator[Client]":
    """Give a client that soon gives up, and turn what it cannot do into sentences."""
    from novacron.runtime.client import Client  # noqa: PLC0415 - heavy
    from novacron.runtime.connection import NoCluster  # noqa: PLC0415
    from novacron.runtime.errors import ApiError, Unauthorized, Unreachable  # noqa: PLC0415

    resolved = target.resolved()
    try:
        client = Client.from_kubeconfig(resolved.kubeconfig, resolved.context)
    except NoCluster as error:
        raise Failure(f"{error}; start a local cluster with `novacron up`") from error
    # A person waits: one more try is enough.
    client.attempts = 2
    server = client.connection.server
    try:
        async with client:
            yield client
    except Unreachable as error:
        raise Failure(f"no cluster answers at {server}; start one with `novacron up`") from error
    except Unauthorized as error:
        raise Failure(f"the cluster at {server} does not accept these credentials") from error
    except ApiError as error:
        if CLOSED in error.message:
            raise Failure(
                "the operator does not answer, and unchecked changes are refused; "
                "look at `novacron status`"
            ) from error
        raise Failure(error.message) from error
