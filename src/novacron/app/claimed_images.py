"""Images in PersistentVolumeClaims: which file of which host, or of which NFS server, that is.

A volume that the operator cannot hand to a host as a directory is refused by its kind.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from novacron.app.settings import Settings
from novacron.core.errors import Rejected, Unreachable
from novacron.images import HostFile
from novacron.runtime.client import Client
from novacron.runtime.errors import ApiError, Forbidden, NotFound
from novacron.runtime.resource import Object, Resource

__all__ = ["CLAIMS", "VOLUMES", "ClaimedImages", "file_on"]

CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
# What those call it who put disks into claims.
USUAL_FILE = "disk.img"
HOSTNAME = "kubernetes.io/hostname"
EVERY = "*"
AGAIN = timedelta(seconds=20)


@dataclass(frozen=True, slots=True)
class ClaimedImages:
    """Finds claims for the machines of one host, which may be a node of the cluster."""

    settings: Settings
    client: Client
    node: str | None = None

    async def find(self, source: str, asking: str) -> HostFile:
        """Return the file behind pvc://namespace/name or pvc://namespace/name/file."""
        namespace, name, *path = source.removeprefix("pvc://").split("/")
        self._require_allowed(source, namespace, asking)
        if ".." in path:
            raise Rejected(f"image {source} is no plain path in a claim", reason="ImageNotFound")
        claim = await self._get(CLAIMS, name, namespace, source)
        volume_name = (claim.get("spec") or {}).get("volumeName")
        if not volume_name or (claim.get("status") or {}).get("phase") != "Bound":
            message = f"image {source}: the claim is not bound to a volume yet"
            raise Rejected(message, reason="ClaimNotBound", again=AGAIN)
        volume = await self._get(VOLUMES, volume_name, None, source)
        return file_on(source, volume["spec"], "/".join(path) or USUAL_FILE, self.node)

    def _require_allowed(self, source: str, namespace: str, asking: str) -> None:
        own = self.settings.image_claim_namespaces
        if namespace in self.settings.image_shared_namespaces:
            return
        if namespace != asking:
            raise Rejected(
                f"image {source}: machines in namespace {asking} may not have images from claims "
                f"of {namespace}; an administrator can share them with --image-shared-namespaces "
                "of the operator",
                reason="SourceDenied",
            )
        if namespace not in own and EVERY not in own:
            raise Rejected(
                f"image {source}: images from claims are not allowed in namespace {namespace}; "
                "an administrator can allow them with --image-claim-namespaces of the operator",
                reason="SourceDenied",
            )

    async def _get(self, kind: Resource, name: str, namespace: str | None, source: str) -> Object:
        try:
            return await self.client.get(kind, name, namespace)
        except NotFound as error:
            raise Rejected(
                f"image {source}: there is no {kind.kind} {name}",
                reason="ImageNotFound",
                again=AGAIN,
            ) from error
        except Forbidden as error:
            where = f" in namespace {namespace}" if namespace else ""
            raise Rejected(
                f"image {source}: the operator lacks the right to get {kind.plural}{where}",
                reason="ClaimForbidden",
                again=AGAIN,
            ) from error
        except ApiError as error:
            raise Unreachable(f"{kind.kind} {name} cannot be read: {error.message}") from error


def file_on(source: str, spec: Mapping[str, Any], path: str, node: str | None) -> HostFile:
    """Return the file in a volume as the host has it; raise Rejected where it cannot have it."""
    if spec.get("volumeMode") == "Block":
        raise _unusable(source, "is a block device; images are files in volumes of mode Filesystem")
    below, _, name = path.rpartition("/")
    if nfs := spec.get("nfs"):
        directory = _joined(nfs["path"], below)
        return HostFile(directory, name, source, nfs["server"])
    local = spec.get("hostPath") or spec.get("local")
    if local is None:
        kind = _kind(spec)
        raise _unusable(source, f"is of type {kind}; a host reads hostPath, local and nfs only")
    nodes = _nodes(spec)
    if node is not None and nodes and node not in nodes:
        where = ", ".join(sorted(nodes))
        raise _unusable(source, f"is on node {where}, but this host is node {node}")
    return HostFile(_joined(local["path"], below), name, source)


def _joined(directory: str, below: str) -> str:
    return f"{directory.rstrip('/')}/{below}".rstrip("/") or "/"


def _kind(spec: Mapping[str, Any]) -> str:
    if csi := spec.get("csi"):
        return f"csi ({csi.get('driver')})"
    known = {"accessModes", "capacity", "claimRef", "mountOptions", "nodeAffinity"}
    known |= {"persistentVolumeReclaimPolicy", "storageClassName", "volumeMode"}
    return ", ".join(sorted(set(spec) - known)) or "none"


def _nodes(spec: Mapping[str, Any]) -> set[str]:
    """Return the nodes that a volume says it is on; none where it does not say."""
    required = (spec.get("nodeAffinity") or {}).get("required") or {}
    return {
        value
        for term in required.get("nodeSelectorTerms") or ()
        for expression in term.get("matchExpressions") or ()
        if expression.get("key") == HOSTNAME and expression.get("operator") == "In"
        for value in expression.get("values") or ()
    }


def _unusable(source: str, why: str) -> Rejected:
    return Rejected(f"image {source}: its volume {why}", reason="VolumeUnusable", again=AGAIN)
