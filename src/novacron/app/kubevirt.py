"""Makes drivers for KubeVirt clusters: the operator's own, and those a Secret says how to reach."""

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from novacron.app.images import secret_data
from novacron.app.settings import Settings
from novacron.core.cloud_init import Source
from novacron.core.errors import Rejected, Unreachable
from novacron.core.host import DeclaredHost
from novacron.drivers.kubevirt import Cluster, KubeVirtDriver
from novacron.runtime.client import Client
from novacron.runtime.connection import NoCluster, from_text
from novacron.runtime.errors import ApiError, NotFound
from novacron.runtime.resource import SECRETS, Resource

__all__ = ["kubevirt_driver"]

KUBECONFIG = "kubeconfig"
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
SCHEME = "kubevirt://"
# A cluster that does not answer must not keep those waiting who work for others.
FAR_SECONDS = 10.0


def kubevirt_driver(host: DeclaredHost, settings: Settings, client: Client) -> KubeVirtDriver:
    """Return the driver of a cluster.

    An address of ``kubevirt://`` is the cluster that the operator is in, and one of
    ``kubevirt://NAMESPACE/SECRET`` that of the kubeconfig in a Secret. A Host has its Secret in the
    operator's namespace.
    """
    secret = _secret_of(host, settings)
    connect = partial(_near, client) if secret is None else partial(_far, client, *secret)
    cluster = Cluster(host.name, connect, settings.watch_namespaces or ("",))
    return KubeVirtDriver(cluster, partial(_entry, client), owned=secret is None)


def _secret_of(host: DeclaredHost, settings: Settings) -> tuple[str, str] | None:
    if host.credentials is not None:
        return settings.namespace, host.credentials
    address = (host.endpoint or SCHEME).removeprefix(SCHEME)
    if not address:
        return None
    namespace, _, name = address.partition("/")
    return namespace, name


@asynccontextmanager
async def _near(client: Client) -> AsyncIterator[Client]:
    yield client  # it is the operator's, and stays open


@asynccontextmanager
async def _far(client: Client, namespace: str, name: str) -> AsyncIterator[Client]:
    data = await secret_data(client, name, namespace)
    if KUBECONFIG not in data:
        raise Rejected(
            f"Secret {namespace}/{name} has no entry {KUBECONFIG} that says how to reach a cluster",
            reason="KubeVirtApiError",
        )
    try:
        connection = from_text(data[KUBECONFIG].decode(errors="replace"))
    except NoCluster as error:
        raise Rejected(
            f"the {KUBECONFIG} of Secret {namespace}/{name} cannot be used: {error}",
            reason="KubeVirtApiError",
        ) from error
    async with Client(connection, observer=client.observer, timeout_seconds=FAR_SECONDS) as far:
        yield far


async def _entry(client: Client, namespace: str, source: Source) -> bytes | None:
    resource = SECRETS if source.kind == SECRETS.kind else CONFIG_MAPS
    try:
        found = await client.get(resource, source.name, namespace)
    except NotFound:
        return None
    except ApiError as error:
        raise Unreachable(f"{source.kind} {source.name} cannot be read: {error.message}") from error
    text = (found.get("data") or {}).get(source.key)
    if text is None:
        binary = (found.get("binaryData") or {}).get(source.key)
        return None if binary is None else base64.b64decode(binary)
    return base64.b64decode(text) if resource is SECRETS else str(text).encode()
