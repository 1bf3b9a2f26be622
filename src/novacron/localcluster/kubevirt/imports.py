"""The kinds of KubeVirt's Containerized Data Importer, as far as virt-controller and clients look.

CDI itself is not here: the stand-in plays it. The schemas hold anything, because the checks of
CDI's own webhooks are not here either.
"""

from novacron.localcluster.kubevirt.names import PROVISIONER
from novacron.localcluster.kubevirt.objects import CLASSES
from novacron.runtime.resource import Object

__all__ = ["DEFINITIONS", "profiles"]

GROUP = "cdi.kubevirt.io"
VERSION = "v1beta1"


def _definition(
    plural: str, kind: str, *short: str, scope: str = "Cluster", status: bool = False
) -> Object:
    version: Object = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {
            "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        },
    }
    if status:
        version["subresources"] = {"status": {}}
        version["additionalPrinterColumns"] = [
            {"name": name.title(), "type": "string", "jsonPath": f".status.{name}"}
            for name in ("phase", "progress")
        ]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": scope,
            "names": {
                "plural": plural,
                "singular": kind.lower(),
                "kind": kind,
                "shortNames": list(short),
            },
            "versions": [version],
        },
    }


DEFINITIONS = (
    _definition("datavolumes", "DataVolume", "dv", "dvs", scope="Namespaced", status=True),
    _definition("storageprofiles", "StorageProfile"),
    # virt-controller waits for these as soon as there are DataVolumes.
    _definition("datasources", "DataSource", "das", scope="Namespaced"),
    _definition("cdis", "CDI", "cdi"),
    _definition("cdiconfigs", "CDIConfig"),
)


def profiles() -> list[Object]:
    """Return what is known of the stand-in's classes: any number of nodes, blocks first."""
    modes = [
        {"accessModes": ["ReadWriteMany"], "volumeMode": mode} for mode in ("Block", "Filesystem")
    ]
    return [
        {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": "StorageProfile",
            "metadata": {"name": name},
            "spec": {},
            "status": {
                "storageClass": name,
                "provisioner": PROVISIONER,
                "claimPropertySets": modes,
            },
        }
        for name in CLASSES
    ]
