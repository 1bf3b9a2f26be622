"""A process that creates or deletes machines as fast as eight connections go.

Raw HTTP with prepared bodies, so that the load costs little beside what is measured. Prints one
line of JSON: when the first request was sent and when the last answer came, on the machine's
monotonic clock, which all processes share.
"""

import argparse
import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import orjson
import uvloop

from bench.machines import COLLECTION, machine, name
from novacron.runtime.connection import from_kubeconfig

__all__ = ["connect"]

CONCURRENCY = 8
NEVER = aiohttp.ClientTimeout(total=None)


@asynccontextmanager
async def connect(kubeconfig: Path) -> AsyncIterator[aiohttp.ClientSession]:
    """Open a session that speaks to the kubeconfig's API server as its user."""
    connection = from_kubeconfig(kubeconfig)
    transport = aiohttp.TCPConnector(ssl=connection.tls or True, limit=CONCURRENCY)
    headers = {"Content-Type": "application/json"}
    async with aiohttp.ClientSession(
        connection.server, connector=transport, headers=headers, timeout=NEVER
    ) as session:
        yield session


Request = tuple[str, str, bytes | None]


def requests(action: str, count: int) -> Iterator[Request]:
    """Return the requests of a load, bodies made beforehand."""
    if action == "delete":
        return iter([("DELETE", f"{COLLECTION}/{name(i)}", None) for i in range(count)])
    return iter([("POST", COLLECTION, orjson.dumps(machine(name(i)))) for i in range(count)])


async def send(session: aiohttp.ClientSession, work: Iterator[Request]) -> None:
    """Send requests until none is left; several of these share one iterator."""
    for method, path, body in work:
        async with session.request(method, path, data=body) as answer:
            text = await answer.read()
            if not answer.ok:
                raise RuntimeError(f"{method} {path}: {answer.status} {text[:400]!r}")


async def main() -> None:
    """Send the load and print when it began and ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=["create", "delete"])
    parser.add_argument("kubeconfig", type=Path)
    parser.add_argument("count", type=int)
    arguments = parser.parse_args()
    work = requests(arguments.action, arguments.count)
    async with connect(arguments.kubeconfig) as session:
        first = time.monotonic()
        async with asyncio.TaskGroup() as senders:
            for _ in range(CONCURRENCY):
                senders.create_task(send(session, work))
        last = time.monotonic()
    print(json.dumps({"first": first, "last": last}))


if __name__ == "__main__":
    uvloop.run(main())
