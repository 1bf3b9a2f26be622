"""Waiting until an object is as wanted, and telling what happens to it meanwhile."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

import click

from novacron.cli.failure import Failure
from novacron.cli.kinds import condition, status
from novacron.runtime.resource import Object, Resource

if TYPE_CHECKING:
    from novacron.runtime.client import Client

__all__ = ["follow", "in_phase", "state_of"]

Tell = Callable[[str], None]


def in_phase(phase: str) -> Callable[[Object | None], bool]:
    """Return a test for a phase."""
    return lambda item: item is not None and status(item).get("phase") == phase


def state_of(item: Object | None) -> str:
    """Return in a few words how an object is."""
    if item is None:
        return "deleted"
    phase = status(item).get("phase") or "not looked at yet"
    if phase == "Migrating":
        migration = status(item).get("migration") or {}
        return f"Migrating to {migration.get('targetNode')}: {migration.get('progress', 0)} %"
    ready = condition(item, "Ready")
    why = ready.get("message") or ready.get("reason")
    return phase if phase == "Running" or not why else f"{phase}: {why}"


async def follow(
    client: "Client",
    resource: Resource,
    name: str,
    namespace: str | None,
    until: Callable[[Object | None], bool],
    *,
    seconds: float,
    tell: Tell = lambda text: click.echo(text, err=True),
    state: Callable[[Object | None], str] = state_of,
) -> Object | None:
    """Return the object when it is as wanted (None: gone); fail when time runs out."""
    last = ""

    async def watch() -> Object | None:
        nonlocal last
        async for item in _states(client, resource, name, namespace, int(seconds) + 1):
            now = state(item)
            if now != last:
                tell(f"{name}: {now}")
            last = now
            if until(item):
                return item
        return None

    try:
        return await asyncio.wait_for(watch(), seconds)
    except TimeoutError as error:
        raise Failure(f"{name} was not as wanted after {seconds:g} s; it is {last}") from error


async def _states(
    client: "Client", resource: Resource, name: str, namespace: str | None, seconds: int
) -> AsyncIterator[Object | None]:
    """Give every state of one object, from now on; None when it is gone."""
    from novacron.runtime.errors import Gone, Unreachable  # noqa: PLC0415

    selector = f"metadata.name={name}"
    while True:
        page = await client.page(resource, namespace, selector=selector)
        yield page.items[0] if page.items else None
        since = page.resource_version
        try:
            events = client.watch(
                resource, namespace, since=since, seconds=seconds, selector=selector
            )
            async for event in events:
                if event.type != "BOOKMARK":
                    yield None if event.type == "DELETED" else event.object
        except (Gone, Unreachable):
            continue
