"""The KubeVirt driver against a real KubeVirt, whose nodes a stand-in plays.

KubeVirt takes a machine that no node has room for and says so when it is to start, starts again
whatever ends by itself, and has one machine of a name in a namespace.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path

import yaml

from api import Refused
from conformance.under_test import Bench, DriverUnderTest
from kubevirt_bed import KubeVirtBed, fresh_namespace, running_bed, virtual_machine
from novacron.core.cloud_init import Source
from novacron.core.machine import FirstDisk, Resources
from novacron.core.volume import Access
from novacron.drivers.kubevirt import Cluster, KubeVirtDriver
from novacron.drivers.kubevirt.names import UID
from novacron.runtime.client import Client
from snapshot_storage import SNAPSHOT_CLASS, answer_snapshots, have_snapshot_storage

HOST = "kubevirt://"
OWN = ("virtualmachines", "persistentvolumeclaims", "secrets")
# How long news may be on its way to the driver.
NEWS = 0.5


@dataclass(frozen=True)
class Outsider:
    """Somebody with kubectl."""

    bed: KubeVirtBed

    async def power_off(self, uid: str) -> None:
        await self._delete("virtualmachineinstances", uid)

    async def destroy(self, uid: str) -> None:
        for plural in OWN:
            await self._delete(plural, uid)

    async def plant(self, name: str) -> None:
        self.bed.create("virtualmachines", virtual_machine(name, runStrategy="Halted"))

    async def _delete(self, plural: str, uid: str) -> None:
        found = self.bed.items(plural, f"{UID}={uid}")
        for each in found:
            self.bed.delete(plural, each["metadata"]["name"])
        gone = {each["metadata"]["uid"] for each in found}
        self.bed.wait(
            f"{plural} stayed",
            lambda: not gone & {each["metadata"]["uid"] for each in self.bed.items(plural, UID)},
        )
        await asyncio.sleep(NEWS)


async def real_time(bed: KubeVirtBed, _: timedelta) -> None:
    """Let a moment of real time pass, and storage do what is asked of it."""
    answer_snapshots(bed)
    await asyncio.sleep(0.3)


async def nothing(namespace: str, source: Source) -> bytes | None:
    """Find no Secret: nobody refers to one here."""
    del namespace, source
    return None


@asynccontextmanager
async def bench(directory: Path) -> AsyncIterator[Bench]:
    opened: list[KubeVirtDriver] = []
    with fresh_namespace(running_bed()) as bed:
        have_snapshot_storage(bed)

        def connect(kubeconfig: Path) -> KubeVirtDriver:
            reach = partial(Client.from_kubeconfig, kubeconfig)
            cluster = Cluster(HOST, reach, (bed.namespace,))
            opened.append(KubeVirtDriver(cluster, nothing, owned=False))
            return opened[-1]

        yield Bench(
            host=HOST,
            connect=partial(connect, bed.kubeconfig),
            connect_broken=partial(connect, _leading_nowhere(bed.kubeconfig, directory)),
            disturb=Outsider(bed),
            pass_time=partial(real_time, bed),
            small=Resources(1, 1024, 1024),
            large=Resources(2, 2048, 2048),
            too_big=Resources(1, 2**24, 1024),
            room=None,
            image="",
            namespace=bed.namespace,
            first_disk=FirstDisk(storage_class=SNAPSHOT_CLASS, access=Access.MANY),
            limited=False,
            restarts_guests=True,
            one_of_a_name=True,
            only_grows_running=True,
            hears_later=True,
            takes_over_volumes=False,
            keeps_memory=False,
        )
        for driver in opened:
            await driver.close()
        _clear(bed)


def _leading_nowhere(kubeconfig: Path, directory: Path) -> Path:
    config = yaml.safe_load(kubeconfig.read_text())
    for each in config["clusters"]:
        each["cluster"]["server"] = "https://127.0.0.1:1"
    path = directory / "nowhere.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


def _clear(bed: KubeVirtBed) -> None:
    for plural in OWN:
        for each in bed.items(plural):
            with suppress(Refused):  # it is on its way
                bed.delete(plural, each["metadata"]["name"])


UNDER_TEST = (DriverUnderTest("kubevirt", bench, examples=1, slow=True, needs="kubevirt_cluster"),)
