"""Writing manifests of many kinds, all at once, and waiting for what they are to become."""

import asyncio
from collections.abc import Iterable

from novacron.localcluster.errors import LocalClusterError
from novacron.runtime.client import Client
from novacron.runtime.errors import NotFound
from novacron.runtime.resource import Object, Resource

__all__ = ["CLUSTER_WIDE", "apply_all", "conditions_hold", "resource_of"]

MANAGER = "novacron-local"
PATIENCE_SECONDS = 60.0
PAUSE_SECONDS = 0.1
# So many requests at once; more would only wait in the API server.
AT_ONCE = 4
PLURALS = {
    "APIService": "apiservices",
    "ConfigMap": "configmaps",
    "CSIDriver": "csidrivers",
    "CustomResourceDefinition": "customresourcedefinitions",
    "StorageClass": "storageclasses",
    "PriorityClass": "priorityclasses",
}
CLUSTER_WIDE = frozenset(
    (
        "APIService",
        "CSIDriver",
        "ClusterRole",
        "ClusterRoleBinding",
        "CustomResourceDefinition",
        "MutatingWebhookConfiguration",
        "Namespace",
        "Node",
        "PriorityClass",
        "StorageClass",
        "StorageProfile",
        "ValidatingWebhookConfiguration",
    )
)


def resource_of(manifest: Object) -> Resource:
    """Return where an object of this manifest's kind lives."""
    group, _, version = manifest["apiVersion"].rpartition("/")
    kind = manifest["kind"]
    plural = PLURALS.get(kind, f"{kind.lower()}s")
    return Resource(group, version, plural, kind, namespaced=kind not in CLUSTER_WIDE)


async def apply_all(client: Client, manifests: Iterable[Object]) -> None:
    """Apply them in no particular order; what is there already and the same stays untouched."""
    room = asyncio.Semaphore(AT_ONCE)

    async def apply(manifest: Object) -> None:
        async with room:
            await client.apply(resource_of(manifest), manifest, manager=MANAGER)

    async with asyncio.TaskGroup() as group:
        for manifest in manifests:
            group.create_task(apply(manifest))


async def conditions_hold(client: Client, manifests: Iterable[Object], condition: str) -> None:
    """Return when each of these objects says of itself that the condition is true."""
    waiting = [(resource_of(each), each["metadata"]["name"]) for each in manifests]
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while waiting:
                if await _holds(client, *waiting[0], condition):
                    waiting.pop(0)
                else:
                    await asyncio.sleep(PAUSE_SECONDS)
    except TimeoutError as error:
        resource, name = waiting[0]
        raise LocalClusterError(f"{resource.kind} {name} does not become {condition}") from error


async def _holds(client: Client, resource: Resource, name: str, condition: str) -> bool:
    try:
        found = await client.get(resource, name)
    except NotFound:
        return False
    conditions = (found.get("status") or {}).get("conditions") or ()
    return any(c["type"] == condition and c["status"] == "True" for c in conditions)
