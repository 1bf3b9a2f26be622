"""What a new cluster starts with: this machine as one host or several, and a first machine.

Given once. A user who deletes or stops them finds them so after the next ``up``.
"""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import novacron
from novacron.cli.failure import Failure
from novacron.cli.follow import follow, in_phase, state_of
from novacron.cli.kinds import HOSTS, MACHINES, OPERATOR_NAMESPACE, condition, status
from novacron.cli.wiring import Guest, Guests
from novacron.runtime.resource import Object, Resource
from novacron.workplace.files import write_private
from novacron.workplace.progress import Progress

if TYPE_CHECKING:
    from novacron.runtime.client import Client

__all__ = ["FIRST_MACHINE", "Welcomed", "first_machine", "welcome"]

FIRST_MACHINE = "hello"
NAMESPACE = "default"
GIVEN = "given"
EXAMPLE = "examples/01-first-vm.yaml"
RUNNING_WITHIN_SECONDS = 120.0
READY_WITHIN_SECONDS = 3.0
READY = "novacron-tiny: ready"
LOOK_SECONDS = 0.2
CONSOLE_LINES = 5
# Colours, cursor movements and whatever else is meant for a terminal and not for a log.
TERMINAL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[^\n\t -~\u00a0-\uffff]")


@dataclass(frozen=True, slots=True)
class Welcomed:
    """All machines there are, and the last the first one said on its console."""

    machines: Sequence[Object]
    console: Sequence[str] = ()


async def welcome(
    client: "Client", marker: Path, hosts: Sequence[Object], guests: Guests, progress: Progress
) -> Welcomed:
    """Make hosts and machine unless that was done before; return what there is when it runs."""
    before = _given(marker)
    fresh = [host for host in hosts if host["metadata"]["name"] not in before]
    for host in hosts:
        if host in fresh:
            await _create(client, HOSTS, host)
        else:
            await _mend(client, host)
    for host in fresh:
        await _follow_host(client, host["metadata"]["name"])
    if not before:
        await _create(client, MACHINES, first_machine())
    if fresh:
        names = "".join(f"{host['metadata']['name']}\n" for host in hosts)
        write_private(marker, f"{GIVEN}\n{names}")
    first = await client.list(MACHINES, NAMESPACE, selector=f"metadata.name={FIRST_MACHINE}")
    console: Sequence[str] = ()
    if first and first[0]["spec"].get("running"):
        console = await _see_it_run(client, guests, progress)
    return Welcomed(await client.list(MACHINES, NAMESPACE), console)


def _given(marker: Path) -> frozenset[str]:
    """Return the names of the hosts that this cluster was welcomed with."""
    lines = marker.read_text().splitlines() if marker.exists() else []
    # Clusters from before there could be several say only that it was done.
    return frozenset(lines[1:] or ("local",)) if lines else frozenset()


def first_machine() -> Object:
    """Return the example that the guide begins with."""
    import yaml  # noqa: PLC0415 - heavy

    package = Path(novacron.__file__).parent
    # Installed, the examples lie inside the package; in a checkout beside its sources.
    for base in (package, package.parents[1]):
        if (base / EXAMPLE).is_file():
            machine: Object = yaml.safe_load((base / EXAMPLE).read_text())
            return machine
    raise Failure(f"{EXAMPLE} is not installed")


def tail(console: bytes, lines: int = CONSOLE_LINES) -> list[str]:
    """Return the last lines of a console, as plain text."""
    text = TERMINAL.sub("", console.decode(errors="replace"))
    said = [line.rstrip() for line in text.splitlines()]
    return [line for line in said if line][-lines:]


async def _follow_host(client: "Client", name: str) -> None:
    await follow(
        client,
        HOSTS,
        name,
        None,
        lambda host: host is not None and condition(host, "Ready").get("status") == "True",
        seconds=RUNNING_WITHIN_SECONDS,
        tell=lambda _: None,
    )


async def _see_it_run(client: "Client", guests: Guests, progress: Progress) -> Sequence[str]:
    """Wait until the first machine runs; a real one also until it has an address."""
    machine = await follow(
        client,
        MACHINES,
        FIRST_MACHINE,
        NAMESPACE,
        in_phase("Running"),
        seconds=RUNNING_WITHIN_SECONDS,
        tell=progress.say,
    )
    assert machine is not None
    async with guests(client, machine, OPERATOR_NAMESPACE) as guest:
        if guest is None:
            return ()
        if machine["spec"]["template"]["spec"].get("networks"):
            await _until_reached(client, guest, progress)
        return tail((await guest.said()).data)


async def _until_reached(client: "Client", guest: Guest, progress: Progress) -> None:
    """Wait until guest and status tell the same addresses: a status may be from before."""

    async def same() -> bool:
        addresses = set(await guest.addresses())
        machine = await client.get(MACHINES, FIRST_MACHINE, NAMESPACE)
        return bool(addresses) and addresses == set(status(machine).get("ipAddresses") or ())

    if await same():
        return
    progress.say(f"{FIRST_MACHINE}: booting")
    if not await _comes_true(same, RUNNING_WITHIN_SECONDS):
        machine = await client.get(MACHINES, FIRST_MACHINE, NAMESPACE)
        raise Failure(
            f"{FIRST_MACHINE} had no address after {RUNNING_WITHIN_SECONDS:g} s; it is "
            f"{state_of(machine)}; its console ends with: "
            f"{' / '.join(tail((await guest.said()).data)) or 'nothing'}"
        )

    async def ready() -> bool:
        return any(READY in line for line in tail((await guest.said()).data))

    # It is about to say so; no fault if it does not.
    await _comes_true(ready, READY_WITHIN_SECONDS)


async def _comes_true(claim: Callable[[], Awaitable[bool]], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not await claim():
        if time.monotonic() > end:
            return False
        await asyncio.sleep(LOOK_SECONDS)
    return True


async def _mend(client: "Client", host: Object) -> None:
    """Have the host found where it is now: the state directory may have been moved."""
    name, endpoint = host["metadata"]["name"], host["spec"].get("endpoint")
    for there in await client.list(HOSTS, selector=f"metadata.name={name}"):
        if endpoint and there["spec"].get("endpoint") not in (None, endpoint):
            await client.patch(HOSTS, name, {"spec": {"endpoint": endpoint}})


async def _create(client: "Client", resource: Resource, body: Object) -> None:
    from novacron.runtime.errors import AlreadyExists  # noqa: PLC0415

    try:
        await client.create(resource, body, NAMESPACE if resource.namespaced else None)
    except AlreadyExists:
        # A run that was interrupted before it could note this came as far.
        return
