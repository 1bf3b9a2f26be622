"""What we add of our own: the way to virt-api, KubeVirt's settings, networks and storage."""

from collections.abc import Sequence
from pathlib import Path

from novacron.localcluster.kubevirt.binaries import VERSION
from novacron.localcluster.kubevirt.names import API, NAMESPACE, NODE, PROVISIONER
from novacron.localcluster.ports import LOOPBACK
from novacron.runtime.resource import Object

__all__ = [
    "CLASSES",
    "NETWORKS",
    "STATUS",
    "address",
    "namespace",
    "nodes",
    "settings",
    "storage",
    "trust",
]

ABOUT = "novacron.io/about"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
# Names of classes; the first is the default.
CLASSES = ("standard", "fast-ssd")
GATES = ("Snapshot", "HotplugVolumes", "ExpandDisks")


def namespace() -> Object:
    """Return the namespace of everything that is KubeVirt's."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}


def nodes(count: int) -> list[Object]:
    """Return the nodes that the stand-in plays, by name."""
    names = [NODE.format(number) for number in range(1, count + 1)]
    return [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}} for name in names]


def address(port: int) -> list[Object]:
    """Return the Service of virt-api and where it leads.

    An endpoint may not be a loopback address, but a host name may look like one.
    """
    metadata: Object = {"name": API, "namespace": NAMESPACE}
    service = {"ports": [{"name": "https", "port": 443, "targetPort": port}]}
    return [
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": service},
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": metadata | {"labels": {"kubernetes.io/service-name": API}},
            "addressType": "FQDN",
            "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
            "endpoints": [{"addresses": [LOOPBACK], "conditions": {"ready": True}}],
        },
    ]


def trust(authority: Path) -> Object:
    """Return whom KubeVirt's programs believe each other by."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "kubevirt-ca", "namespace": NAMESPACE},
        "data": {"ca-bundle": authority.read_text()},
    }


def settings() -> Object:
    """Return KubeVirt's own configuration; without it the programs use none at all."""
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "KubeVirt",
        "metadata": {"name": "kubevirt", "namespace": NAMESPACE},
        "spec": {
            "configuration": {
                "developerConfiguration": {"useEmulation": True, "featureGates": list(GATES)},
                "vmRolloutStrategy": "LiveUpdate",
            },
            "workloadUpdateStrategy": {"workloadUpdateMethods": ["LiveMigrate"]},
        },
    }


# What virt-operator says when it is done; the programs believe the settings only then.
STATUS: Object = {
    "phase": "Deployed",
    "defaultArchitecture": "amd64",
    "observedKubeVirtVersion": f"v{VERSION}",
    "targetKubeVirtVersion": f"v{VERSION}",
    "operatorVersion": f"v{VERSION}",
    "conditions": [
        {
            "type": "Available",
            "status": "True",
            "reason": "AllComponentsReady",
            "message": "Set up by novacron: the control plane is real, its nodes are a stand-in.",
        }
    ],
}


def storage() -> list[Object]:
    """Return the classes whose volumes the stand-in provides, and its driver's name."""
    driver = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": PROVISIONER, "annotations": _about("Volumes of it hold no bytes.")},
        "spec": {"attachRequired": False},
    }
    return [driver, *(_class(name, default=name == CLASSES[0]) for name in CLASSES)]


def _class(name: str, *, default: bool) -> Object:
    annotations = _about("A stand-in: volumes are objects without bytes.")
    if default:
        annotations[DEFAULT_CLASS] = "true"
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name, "annotations": annotations},
        "provisioner": PROVISIONER,
        "allowVolumeExpansion": True,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "Immediate",
    }


def _about(sentence: str) -> dict[str, str]:
    return {ABOUT: sentence}


def _text(*path: str) -> Object:
    """Return a schema of nested objects that ends in a string."""
    schema: Object = {"type": "string"}
    for name in reversed(path):
        schema = {"type": "object", "properties": {name: schema}}
    return schema


def _names(plural: str, singular: str, kind: str, short: Sequence[str]) -> Object:
    return {"plural": plural, "singular": singular, "kind": kind, "shortNames": list(short)}


# Multus brings it along elsewhere; KubeVirt reads it, and nothing here attaches anything.
NETWORKS: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "network-attachment-definitions.k8s.cni.cncf.io"},
    "spec": {
        "group": "k8s.cni.cncf.io",
        "scope": "Namespaced",
        "names": _names(
            "network-attachment-definitions",
            "network-attachment-definition",
            "NetworkAttachmentDefinition",
            ["net-attach-def"],
        ),
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": _text("spec", "config")},
            }
        ],
    },
}
