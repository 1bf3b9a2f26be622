"""A process that watches the machines and says when all of them are Running, or gone.

Prints ``watching`` once it misses nothing any more, then one line of JSON with the moment, on the
machine's monotonic clock, at which the last machine got there.
"""

import argparse
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import uvloop

from bench.load import connect
from bench.machines import COLLECTION, PREFIX

LINE_LIMIT_BYTES = 2**22


def arrived(event: dict[str, Any], goal: str) -> bool:
    """Say whether this event brings a machine of the load to the goal."""
    if not event["object"]["metadata"]["name"].startswith(PREFIX):
        return False
    if goal == "deleted":
        return bool(event["type"] == "DELETED")
    return bool(event["object"].get("status", {}).get("phase") == "Running")


async def follow(session: aiohttp.ClientSession, goal: str, count: int) -> float:
    """Return when the last of the machines reached the goal."""
    async with session.get(COLLECTION, params={"limit": 1}) as answer:
        version = orjson.loads(await answer.read())["metadata"]["resourceVersion"]
    print("watching", flush=True)
    there: set[str] = set()
    while True:
        # The server ends the stream of a reader that falls behind on a busy machine.
        async for event in events(session, version):
            version = event["object"]["metadata"]["resourceVersion"]
            if arrived(event, goal):
                there.add(event["object"]["metadata"]["name"])
            if len(there) == count:
                return time.monotonic()


async def events(session: aiohttp.ClientSession, version: str) -> AsyncIterator[dict[str, Any]]:
    """Yield what happens after this version, until the server ends the stream."""
    parameters = {"watch": "1", "resourceVersion": version, "timeoutSeconds": "3600"}
    async with session.get(COLLECTION, params=parameters, read_bufsize=LINE_LIMIT_BYTES) as stream:
        stream.raise_for_status()
        async for line in stream.content:
            event: dict[str, Any] = orjson.loads(line)
            if event["type"] == "ERROR":
                raise RuntimeError(f"the watch failed: {event['object']}")
            yield event


async def main() -> None:
    """Watch until all have arrived and print the moment."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("goal", choices=["running", "deleted"])
    parser.add_argument("kubeconfig", type=Path)
    parser.add_argument("count", type=int)
    arguments = parser.parse_args()
    async with connect(arguments.kubeconfig) as session:
        done = await follow(session, arguments.goal, arguments.count)
    print(json.dumps({"done": done}))


if __name__ == "__main__":
    uvloop.run(main())
