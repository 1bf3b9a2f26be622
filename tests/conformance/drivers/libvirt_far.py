"""The libvirt driver on a host that is reached by TLS alone, made as the operator makes it.

From a Host's settings and a Secret that a real API server keeps. The daemon is in a network of its
own; only the outsider of the tests comes by its socket.
"""

import base64
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from api import Api
from conformance.drivers.libvirt import HOST, bench_of
from conformance.under_test import Bench, DriverUnderTest
from fleet import shared_fleet
from guest_images import directory_with_tiny
from novacron.app.libvirt import libvirt_driver
from novacron.app.settings import Settings
from novacron.core.host import DeclaredHost
from novacron.drivers.libvirt import LibvirtDriver
from novacron.localcluster.controlplane import ControlPlane
from novacron.localcluster.ports import free_port
from novacron.runtime.client import Client
from open_directories import open_to_others

__all__ = ["UNDER_TEST", "credentials_kept"]

NAMESPACE, SECRET = "far-libvirt", "of-the-host"
CLASSES = [
    {"name": "fast", "pool": "fast"},
    {"name": "common", "pool": "common", "shared": True},
]
_keepers: list[ControlPlane] = []


@contextmanager
def credentials_kept(plane: ControlPlane) -> Iterator[None]:
    """Have an API server keep what lets the operator in, for as long as tests run."""
    fleet = shared_fleet()
    pair = fleet.caller()
    files = {
        "ca.crt": fleet.authority.pair.certificate,
        "tls.crt": pair.certificate,
        "tls.key": pair.key,
    }
    data = {name: base64.b64encode(path.read_bytes()).decode() for name, path in files.items()}
    api = Api(plane.kubeconfig)
    api.create_namespace(NAMESPACE)
    secrets = f"/api/v1/namespaces/{NAMESPACE}/secrets"
    api.call("POST", secrets, {"metadata": {"name": SECRET}, "data": data})
    api.close()
    _keepers.append(plane)
    yield
    _keepers.remove(plane)


@asynccontextmanager
async def bench(directory: Path) -> AsyncIterator[Bench]:
    fleet, keeper = shared_fleet(), _keepers[-1]
    images = directory_with_tiny(directory / "images")
    open_to_others(directory)  # pools are in it, and guests of a fleet run as nobody in particular
    settings = Settings(namespace=NAMESPACE, images_directory=images)
    declared = {"network": fleet.hosts[0].network, "storageClasses": CLASSES}
    async with Client.from_kubeconfig(keeper.kubeconfig, None) as client:

        def connect(endpoint: str) -> LibvirtDriver:
            host = DeclaredHost("uid", HOST, "libvirt", endpoint, SECRET, settings=declared)
            return libvirt_driver(host, settings, client)

        near, far = fleet.hosts[0].uri, fleet.tls_uri(1)
        nowhere = f"qemu+tls://127.0.0.1:{free_port()}/system"
        async with bench_of(near, connect, far, nowhere, directory) as found:
            yield found


UNDER_TEST = (
    DriverUnderTest("libvirt-far", bench, examples=1, slow=True, needs="libvirt_credentials"),
)
