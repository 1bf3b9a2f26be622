"""Connects to a host, freezes it, and ends: with or without a farewell, or in the midst of a call.

Run by a test, with the host's URI, its process and the way to end.
"""

import asyncio
import os
import signal
import sys
from contextlib import suppress

from novacron.core.machine import MachineRef
from novacron.drivers.libvirt import LibvirtDriver, LibvirtHost


async def main(uri: str, pid: int, farewell: str) -> LibvirtDriver:
    """Return the driver, so that it is still there when the interpreter ends."""
    driver = LibvirtDriver(LibvirtHost("far", uri), lambda _: None)
    await driver.machines("far")
    print("connected")
    os.kill(pid, signal.SIGSTOP)
    print("frozen")
    if farewell == "call":
        with suppress(TimeoutError):
            await asyncio.wait_for(driver.observe(MachineRef("u", "default", "m", "far")), 1)
    if farewell == "close":
        await driver.close()
    return driver


if __name__ == "__main__":
    kept = asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
