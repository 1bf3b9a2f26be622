"""A process that acts under claims, for the tests to kill: python lease_process.py KUBECONFIG …

Every 50 ms it appends "time pid act claim thing" to a file for everything it may act on: each
of KEYS that it owns, and "leader" while it leads. Like the client before a write, it asks the
fence first. It also writes when a claim begins and ends to count. SIGTERM lets it leave in
good order.
"""

import argparse
import asyncio
import os
import signal
from datetime import timedelta
from pathlib import Path

from novacron.runtime.claims import Claims
from novacron.runtime.client import Client
from novacron.runtime.leases import ApiLeases, LeaseTiming
from novacron.runtime.membership import Membership, boottime
from novacron.runtime.resource import Key

KEYS = [Key("default", f"vm-{number}") for number in range(24)]


class Diary:
    """What this process did, in a file that several write."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY)

    def write(self, *entries: str) -> None:
        """Append entries with one time, in one piece."""
        prefix = f"{boottime()} {os.getpid()}"
        os.write(self._file, "".join(f"{prefix} {entry}\n" for entry in entries).encode())


async def act(claims: Claims, diary: Diary) -> None:
    """Act on everything that is ours, over and over."""
    while True:
        mine = [f"act {claims.claim_for(key)} {key.name}" for key in KEYS if claims.owns(key)]
        if claims.leader:
            mine.append("act leader leader")
        if mine:
            claims.membership.seconds_left()
            diary.write(*mine)
        await asyncio.sleep(0.05)


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kubeconfig", type=Path)
    parser.add_argument("namespace")
    parser.add_argument("diary", type=Path)
    parser.add_argument("--shards", type=int, default=1)
    parser.add_argument("--timing", nargs=3, type=float, default=None)
    options = parser.parse_args()
    seconds = [timedelta(seconds=number) for number in options.timing or ()]
    timing = LeaseTiming(*seconds)
    async with Client.from_kubeconfig(options.kubeconfig) as client:
        leases = ApiLeases(client, options.namespace, "test")
        claims = Claims(Membership(leases, timing), options.shards)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, claims.stop)
        diary = Diary(options.diary)

        async def drain(claim: str) -> None:
            diary.write(f"end {claim} -")

        claims.begun = lambda claim: diary.write(f"begin {claim} -")
        claims.drain = drain
        acting = asyncio.create_task(act(claims, diary))
        await claims.run()
        acting.cancel()


if __name__ == "__main__":
    asyncio.run(main())
