"""Has certificates made in a process of its own, which ends when they are.

The library that makes them takes 15 MiB and a tenth of a second, and is needed every few weeks.
Keys go through pipes: never through arguments, the environment or a file.
"""

import asyncio
import sys
from collections.abc import Sequence
from datetime import datetime

import orjson

from novacron.runtime.certificate_pair import Certificates, Lifetimes

__all__ = ["fresh", "renewed"]


async def fresh(hosts: Sequence[str], now: datetime, lifetimes: Lifetimes) -> Certificates:
    """Return a new authority and a new server certificate; see ``issuing.fresh``."""
    return await _ordered(None, hosts, now, lifetimes, b"")


async def renewed(
    held: Certificates, hosts: Sequence[str], now: datetime, lifetimes: Lifetimes, trusted: bytes
) -> Certificates:
    """Return the certificates with whatever is due replaced; see ``issuing.renewed``."""
    return await _ordered(held, hosts, now, lifetimes, trusted)


async def _ordered(
    held: Certificates | None,
    hosts: Sequence[str],
    now: datetime,
    lifetimes: Lifetimes,
    trusted: bytes,
) -> Certificates:
    order = {
        "held": held.data() if held else None,
        "hosts": list(hosts),
        "now": now.isoformat(),
        "lifetimes": [lifetimes.authority.total_seconds(), lifetimes.server.total_seconds()],
        "trusted": trusted.decode(),
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "novacron.runtime.issuing"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate(orjson.dumps(order))
    if process.returncode != 0:
        raise RuntimeError(f"making certificates ended with code {process.returncode}")
    return Certificates.from_data(orjson.loads(output))
