"""Applying manifests of the few kinds that setting up an operator takes."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from novacron.runtime.resource import NAMESPACES, Object, Resource

if TYPE_CHECKING:
    from novacron.runtime.client import Client

__all__ = ["apply_all"]

_RBAC = ("rbac.authorization.k8s.io", "v1")
_KINDS = {
    resource.kind: resource
    for resource in (
        NAMESPACES,
        Resource("", "v1", "serviceaccounts", "ServiceAccount"),
        Resource(*_RBAC, "clusterroles", "ClusterRole", namespaced=False),
        Resource(*_RBAC, "clusterrolebindings", "ClusterRoleBinding", namespaced=False),
        Resource(*_RBAC, "roles", "Role"),
        Resource(*_RBAC, "rolebindings", "RoleBinding"),
        Resource(
            "admissionregistration.k8s.io",
            "v1",
            "validatingwebhookconfigurations",
            "ValidatingWebhookConfiguration",
            namespaced=False,
        ),
    )
}


async def apply_all(client: "Client", manifests: Iterable[Object]) -> None:
    """Apply them in order; what is there already and the same stays untouched."""
    for manifest in manifests:
        await client.apply(_KINDS[manifest["kind"]], manifest)
