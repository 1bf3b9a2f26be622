"""The guest behind one machine, asked through its host's driver, for commands that show it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from novacron.app.libvirt import libvirt_driver
from novacron.app.registry import HOST_KIND, HOSTS
from novacron.app.settings import Settings
from novacron.core.machine import MachineRef

if TYPE_CHECKING:
    from novacron.drivers.libvirt import LibvirtDriver
    from novacron.runtime.client import Client

__all__ = ["guest_of"]


@dataclass(frozen=True, slots=True)
class _Guest:
    driver: "LibvirtDriver"
    ref: MachineRef

    async def addresses(self) -> tuple[str, ...]:
        """Return the addresses the guest has now; none while it is off."""
        seen = await self.driver.observe(self.ref)
        return seen.addresses if seen else ()

    async def console(self) -> bytes:
        """Return what it said on its console so far."""
        return (await self.driver.console_log(self.ref)).data


@asynccontextmanager
async def guest_of(client: "Client", machine: dict[str, Any]) -> AsyncIterator[_Guest | None]:
    """Give the guest of a machine; None when its host simulates it."""
    metadata, name = machine["metadata"], machine["status"]["nodeName"]
    host = HOST_KIND.host(await client.get(HOSTS, name))
    if host.driver != "libvirt":
        yield None
        return
    driver = libvirt_driver(host, Settings(), client)
    ref = MachineRef(metadata["uid"], metadata["namespace"], metadata["name"], name)
    try:
        yield _Guest(driver, ref)
    finally:
        await driver.close()
