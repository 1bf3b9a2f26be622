"""Writing manifests of many kinds, all at once, and waiting for new kinds to be served."""

import asyncio
from collections.abc import Iterable, Sequence

from novacron.localcluster.errors import LocalClusterError
from novacron.runtime.client import Client
from novacron.runtime.resource import Object, Resource

__all__ = ["CLUSTER_WIDE", "apply_all", "established", "resource_of"]

MANAGER = "novacron-local"
ESTABLISHED_WITHIN_SECONDS = 60.0
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
        "PriorityClass",
        "StorageClass",
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


async def established(client: Client, definitions: Sequence[Object]) -> None:
    """Return when the API server serves all these kinds."""
    try:
        async with asyncio.timeout(ESTABLISHED_WITHIN_SECONDS):
            waiting = list(definitions)
            while waiting:
                if await _is_served(client, waiting[0]):
                    waiting.pop(0)
                else:
                    await asyncio.sleep(PAUSE_SECONDS)
    except TimeoutError as error:
        raise LocalClusterError("the API server did not take KubeVirt's kinds into use") from error


async def _is_served(client: Client, definition: Object) -> bool:
    found = await client.get(resource_of(definition), definition["metadata"]["name"])
    conditions = (found.get("status") or {}).get("conditions") or ()
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)
