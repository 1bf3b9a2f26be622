"""What KubeVirt's own operator would create, as its own code says, made fit for loopback."""

import base64
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from novacron.localcluster.errors import LocalClusterError
from novacron.runtime.resource import Object

__all__ = ["Manifests"]

WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


@dataclass(frozen=True, slots=True)
class Manifests:
    """All objects of the release, by when they are needed."""

    items: tuple[Object, ...]

    @classmethod
    def of(cls, binaries: Path) -> "Manifests":
        """Ask the program that knows them."""
        done = subprocess.run([binaries / "manifests"], capture_output=True, check=False)
        if done.returncode:
            raise LocalClusterError(f"{binaries / 'manifests'} failed; remove {binaries}")
        return cls(tuple(_bare(item) for item in json.loads(done.stdout)["items"]))

    @property
    def definitions(self) -> list[Object]:
        """Return the kinds."""
        return [item for item in self.items if item["kind"] == "CustomResourceDefinition"]

    @property
    def rights(self) -> list[Object]:
        """Return accounts, roles and priorities: what the programs need before they start."""
        later = ("CustomResourceDefinition", "APIService", *WEBHOOKS)
        return [item for item in self.items if item["kind"] not in later]

    def doors(self, authority: Path) -> list[Object]:
        """Return what leads the API server to virt-api, which it knows by this authority."""
        trusted = base64.b64encode(authority.read_bytes()).decode()
        return [_trusting(item, trusted) for item in self.items if _is_door(item)]


def _is_door(item: Object) -> bool:
    return item["kind"] == "APIService" or item["kind"] in WEBHOOKS


def _trusting(item: Object, authority: str) -> Object:
    if item["kind"] == "APIService":
        return {**item, "spec": {**item["spec"], "caBundle": authority}}
    hooks = [
        {**hook, "clientConfig": {**hook["clientConfig"], "caBundle": authority}}
        for hook in item["webhooks"]
    ]
    return {**item, "webhooks": hooks}


def _bare(item: Object) -> Object:
    """Drop what only the server writes, and nulls, which it would not let anybody own."""
    metadata = {k: v for k, v in item["metadata"].items() if v is not None}
    return {k: v for k, v in item.items() if k != "status"} | {"metadata": metadata}
