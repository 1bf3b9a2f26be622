"""Kubeconfig files: where an API server is and who one is to it."""

import base64
import json
from pathlib import Path

from novacron.localcluster.layout import CLUSTER_NAME
from novacron.localcluster.pki import KeyPair
from novacron.workplace.files import write_private

__all__ = ["write_kubeconfig"]


def write_kubeconfig(
    path: Path, server: str, authority: Path, client: KeyPair, *, embed: bool = True
) -> Path:
    """Write a kubeconfig; JSON, which every reader of YAML reads.

    An embedded one can be copied elsewhere; one that names the files is for Kubernetes' own
    programs, which read a renewed certificate without being started again.
    """
    user = _material("client-certificate", client.certificate, embed=embed)
    user |= _material("client-key", client.key, embed=embed)
    cluster = {"server": server, **_material("certificate-authority", authority, embed=embed)}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": CLUSTER_NAME,
        "clusters": [{"name": CLUSTER_NAME, "cluster": cluster}],
        "users": [{"name": path.stem, "user": user}],
        "contexts": [
            {"name": CLUSTER_NAME, "context": {"cluster": CLUSTER_NAME, "user": path.stem}}
        ],
    }
    content = json.dumps(document, indent=2) + "\n"
    if not path.exists() or path.read_text() != content:
        write_private(path, content)
    return path


def _material(field: str, path: Path, *, embed: bool) -> dict[str, str]:
    if not embed:
        return {field: str(path)}
    return {f"{field}-data": base64.b64encode(path.read_bytes()).decode()}
