"""Kubeconfigs by which the API server knows their holder as a service account."""

import json
from pathlib import Path

from novacron.localcluster.controlplane import ControlPlane

__all__ = ["kubeconfig_of"]


def kubeconfig_of(plane: ControlPlane, namespace: str, name: str) -> Path:
    """Return the kubeconfig of a service account, with a token as its pods are given."""
    token = plane.kubectl("create", "token", name, "--namespace", namespace).strip()
    admin = json.loads(plane.kubectl("config", "view", "--raw", "--output", "json"))
    admin["users"] = [{"name": user["name"], "user": {"token": token}} for user in admin["users"]]
    path = plane.directory / f"{namespace}-{name}.kubeconfig"
    path.write_text(json.dumps(admin))
    path.chmod(0o600)
    return path
