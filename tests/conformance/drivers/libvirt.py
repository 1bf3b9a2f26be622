"""The libvirt driver against a real libvirtd and real QEMU guests."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path

import libvirt

from conformance.under_test import Bench, DriverUnderTest
from guest_images import located
from libvirt_daemon import OF_ALL, add_pool, shared_daemon
from novacron.core.machine import Resources
from novacron.drivers.libvirt import ClassPool, LibvirtDriver, LibvirtHost
from novacron.drivers.libvirt.domain import domain_uuid, volume_prefix

__all__ = ["HOST", "UNDER_TEST", "bench_of"]

HOST = "kvm-a"


@dataclass(frozen=True)
class Outsider:
    """Somebody with virsh."""

    connection: libvirt.virConnect

    async def power_off(self, uid: str) -> None:
        domain = self.connection.lookupByUUIDString(domain_uuid(uid))
        if domain.isActive():
            domain.destroy()

    async def destroy(self, uid: str) -> None:
        await self.power_off(uid)
        self.connection.lookupByUUIDString(domain_uuid(uid)).undefine()
        for volume in self.connection.storagePoolLookupByName("novacron").listAllVolumes():
            if volume.name().startswith(volume_prefix(uid)):
                volume.delete()

    async def plant(self, name: str) -> None:
        self.connection.defineXML(
            f"<domain type='qemu'><name>default.{name}</name><memory unit='MiB'>64</memory>"
            "<os><type arch='x86_64' machine='q35'>hvm</type></os></domain>"
        )


async def real_time(_: timedelta) -> None:
    """Let a moment of real time pass."""
    await asyncio.sleep(0.5)


@asynccontextmanager
async def bench(directory: Path) -> AsyncIterator[Bench]:
    def connect(uri: str) -> LibvirtDriver:
        classes = {"fast": ClassPool("fast"), "common": ClassPool("common", shared=True)}
        host = LibvirtHost(HOST, uri, network="novacron", storage_classes=classes)
        return LibvirtDriver(host, located)

    uri = shared_daemon().uri
    nowhere = f"qemu:///system?socket={directory}/no-such-socket"
    async with bench_of(uri, connect, uri, nowhere, directory) as found:
        yield found


@asynccontextmanager
async def bench_of(
    near: str, connect: Callable[[str], LibvirtDriver], uri: str, nowhere: str, directory: Path
) -> AsyncIterator[Bench]:
    """A host to which an outsider sits near, and the driver comes as ``connect`` says."""
    opened: list[LibvirtDriver] = []

    def connected(uri: str) -> LibvirtDriver:
        opened.append(connect(uri))
        return opened[-1]

    connection = libvirt.open(near)
    pools = [add_pool(connection, name, directory / name) for name in ("fast", "common")]
    yield Bench(
        host=HOST,
        connect=partial(connected, uri),
        connect_broken=partial(connected, nowhere),
        disturb=Outsider(connection),
        pass_time=real_time,
        small=Resources(1, 192, 256),
        large=Resources(2, 256, 512),
        too_big=Resources(1, 1024**3, 256),
        room=None,
        image="builtin://tiny",
        ids_are_uids=True,
    )
    for driver in opened:
        await driver.close()
    _clear(connection)
    for pool in pools:
        pool.destroy()
        pool.undefine()
    connection.close()


def _clear(connection: libvirt.virConnect) -> None:
    for domain in connection.listAllDomains():
        if domain.isActive():
            domain.destroy()
        domain.undefineFlags(libvirt.VIR_DOMAIN_UNDEFINE_SNAPSHOTS_METADATA)
    for pool in connection.listAllStoragePools():
        with suppress(libvirt.libvirtError):  # it refuses while a volume is being filled
            pool.refresh()
        for volume in pool.listAllVolumes():
            if not volume.name().startswith(OF_ALL):
                volume.delete()


UNDER_TEST = (DriverUnderTest("libvirt", bench, examples=2, slow=True),)
