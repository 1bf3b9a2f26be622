"""The guest behind one machine, asked through its host's driver, for commands that show it."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from novacron.app.drivers import driver_makers
from novacron.app.registry import HOST_KIND, HOSTS, VITI_MACHINES
from novacron.app.settings import Settings
from novacron.core.driver import Console, ConsoleStream, Display, Driver, Said
from novacron.core.host import DeclaredHost
from novacron.core.machine import MachineRef

if TYPE_CHECKING:
    from novacron.runtime.client import Client

__all__ = ["guest_of"]


@dataclass(frozen=True, slots=True)
class _Guest:
    """Satisfies ``cli.wiring.Guest``."""

    driver: Driver
    shown: Console
    ref: MachineRef

    async def addresses(self) -> tuple[str, ...]:
        """Return the addresses the guest has now; none while it is off."""
        seen = await self.driver.observe(self.ref)
        return seen.addresses if seen else ()

    async def said(self, since: int = 0) -> Said:
        """Return what it said on its console so far, or a part of that."""
        return await self.shown.console_log(self.ref, since)

    async def console(self) -> ConsoleStream:
        """Open its console."""
        return await self.shown.console(self.ref)

    async def display(self) -> Display:
        """Tell where its screen is."""
        return await self.shown.display(self.ref)

    async def open_display(self) -> socket.socket:
        """Connect to its screen."""
        return await self.shown.open_display(self.ref)


async def _host(client: "Client", machine: dict[str, Any]) -> DeclaredHost:
    """Return the host of a machine; where it is a cluster, its status says which."""
    if machine.get("kind") != VITI_MACHINES.kind:
        return HOST_KIND.host(await client.get(HOSTS, machine["status"]["nodeName"]))
    address = machine["status"].get("provider")
    return DeclaredHost("", "kubevirt", "kubevirt", endpoint=address)


@asynccontextmanager
async def guest_of(
    client: "Client", machine: dict[str, Any], secrets: str
) -> AsyncIterator[_Guest | None]:
    """Give the guest of a machine that has a host; None when that can show nothing of it."""
    metadata, name = machine["metadata"], machine["status"]["nodeName"]
    host = await _host(client, machine)
    driver = driver_makers(Settings(namespace=secrets), client)[host.driver](host)
    ref = MachineRef(metadata["uid"], metadata["namespace"], metadata["name"], name)
    shown: object = driver
    try:
        yield _Guest(driver, shown, ref) if isinstance(shown, Console) else None
    finally:
        await driver.close()
