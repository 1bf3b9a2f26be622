"""A small kind of the tests' own, for whatever needs a custom resource and knows no machines."""

import contextlib

from novacron.localcluster.controlplane import ControlPlane
from novacron.runtime.client import Client
from novacron.runtime.errors import NotFound
from novacron.runtime.resource import Object, Resource

__all__ = ["WIDGETS", "install_widgets", "widget"]

WIDGETS = Resource("test.novacron.io", "v1", "widgets", "Widget")

_OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.test.novacron.io"},
    "spec": {
        "group": WIDGETS.group,
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": _OPEN, "status": _OPEN},
                    }
                },
            }
        ],
    },
}
_CRDS = Resource(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    namespaced=False,
)


async def install_widgets(plane: ControlPlane) -> None:
    """Make the API server serve widgets, and wait until it does."""
    async with Client.from_kubeconfig(plane.kubeconfig) as client:
        await client.apply(_CRDS, _CRD)
        plane.kubectl("wait", "--for=condition=Established", "crd/widgets.test.novacron.io")
        served = False
        while not served:
            with contextlib.suppress(NotFound):
                await client.list(WIDGETS)
                served = True


def widget(name: str, namespace: str, **spec: object) -> Object:
    """Return a widget to create."""
    return {
        "apiVersion": WIDGETS.api_version,
        "kind": WIDGETS.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }
