"""Tells the API server which webhooks to call, where, and whom to trust.

Writes the two webhook configurations and the conversion part of CRDs with several versions, only
when they differ from what is there. What the webhooks do is not known here.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from novacron.runtime.admission import CONVERT_PATH, Admission, Webhooks
from novacron.runtime.client import Client
from novacron.runtime.errors import NotFound
from novacron.runtime.resource import Object, Resource

__all__ = [
    "CUSTOM_RESOURCE_DEFINITIONS",
    "MUTATING_WEBHOOKS",
    "VALIDATING_WEBHOOKS",
    "Endpoint",
    "ServiceEndpoint",
    "UrlEndpoint",
    "WebhookConfiguration",
]

_GROUP = "admissionregistration.k8s.io"
MUTATING_WEBHOOKS = Resource(
    _GROUP, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", namespaced=False
)
VALIDATING_WEBHOOKS = Resource(
    _GROUP,
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)
CUSTOM_RESOURCE_DEFINITIONS = Resource(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    namespaced=False,
)

TIMEOUT_SECONDS = 5
# Not the manager that installs CRDs: an apply takes away what the same manager applied before.
FIELD_MANAGER = "novacron-webhooks"
# Labels, finalizers and owner references are no business of ours: most updates by controllers
# change nothing else, and are not worth a call.
SPEC_CHANGED = {
    "spec-changed": "object == null || oldObject == null || object.?spec != oldObject.?spec"
}


class Endpoint(Protocol):
    """Where the API server reaches the webhook server."""

    def client_config(self, path: str) -> Object:
        """Return the address of a path in the words of Kubernetes."""


@dataclass(frozen=True, slots=True)
class UrlEndpoint:
    """An operator outside of the cluster, at ``https://host:port``."""

    base: str

    def client_config(self, path: str) -> Object:
        """Return the URL of a path."""
        return {"url": self.base + path}


@dataclass(frozen=True, slots=True)
class ServiceEndpoint:
    """An operator in the cluster, behind a Service."""

    namespace: str
    name: str
    port: int = 443

    def client_config(self, path: str) -> Object:
        """Return the Service and the path."""
        service = {
            "namespace": self.namespace,
            "name": self.name,
            "port": self.port,
            "path": path,
        }
        return {"service": service}


@dataclass(frozen=True, slots=True)
class WebhookConfiguration:
    """The API server's side of the webhooks, under one name."""

    client: Client
    name: str
    endpoint: Endpoint
    webhooks: Webhooks
    namespace_selector: Object | None = None

    async def write(self, authorities: bytes) -> None:
        """Make the API server call the webhooks and trust these authorities (PEM)."""
        bundle = base64.b64encode(authorities).decode()
        # A lost default is repaired by the controllers and the schema; a lost validation is not.
        mutating = self._hooks(self.webhooks.mutating, "Ignore", bundle)
        validating = self._hooks(self.webhooks.validating, "Fail", bundle)
        # Conversion first: admission of another version needs it.
        for name in self.webhooks.converting:
            await self._write_conversion(name, bundle)
        await self._write_hooks(MUTATING_WEBHOOKS, mutating)
        await self._write_hooks(VALIDATING_WEBHOOKS, validating)

    def _hooks(
        self, admissions: Mapping[str, Admission], failure_policy: str, bundle: str
    ) -> dict[str, Object]:
        return {
            name: {
                "name": name,
                "clientConfig": self._client_config(admission.path, bundle),
                "rules": [_rule(admission)],
                "failurePolicy": failure_policy,
                "sideEffects": "None",
                "timeoutSeconds": TIMEOUT_SECONDS,
                "matchPolicy": "Equivalent",
                "matchConditions": _conditions(admission),
                "admissionReviewVersions": ["v1"],
                "namespaceSelector": self.namespace_selector or {},
            }
            for name, admission in admissions.items()
        }

    def _client_config(self, path: str, bundle: str) -> Object:
        return {**self.endpoint.client_config(path), "caBundle": bundle}

    async def _write_hooks(self, resource: Resource, hooks: dict[str, Object]) -> None:
        try:
            found = await self.client.get(resource, self.name)
        except NotFound:
            found = {}
        present = {hook["name"]: hook for hook in found.get("webhooks") or ()}
        if present.keys() == hooks.keys() and all(
            _holds(present[name], hook) for name, hook in hooks.items()
        ):
            return
        # Nothing but the name: whoever installed the configuration put labels of his own on it.
        metadata = {"name": self.name}
        await self._apply(resource, {"metadata": metadata, "webhooks": list(hooks.values())})

    async def _write_conversion(self, name: str, bundle: str) -> None:
        found = await self.client.get(CUSTOM_RESOURCE_DEFINITIONS, name)
        webhook = {
            "conversionReviewVersions": ["v1"],
            "clientConfig": self._client_config(CONVERT_PATH, bundle),
        }
        conversion = {"strategy": "Webhook", "webhook": webhook}
        spec = found["spec"]
        if len(spec["versions"]) > 1 and spec.get("conversion") != conversion:
            body = {"metadata": {"name": name}, "spec": {"conversion": conversion}}
            await self._apply(CUSTOM_RESOURCE_DEFINITIONS, body)

    async def _apply(self, resource: Resource, body: Object) -> None:
        head = {"apiVersion": resource.api_version, "kind": resource.kind}
        await self.client.apply(resource, head | body, manager=FIELD_MANAGER)


def _rule(admission: Admission) -> Object:
    resource = admission.resource
    return {
        "apiGroups": [resource.group],
        "apiVersions": [resource.version],
        "resources": [resource.plural],
        "operations": list(admission.operations),
        "scope": "*",
    }


def _conditions(admission: Admission) -> list[Object]:
    conditions = SPEC_CHANGED | dict(admission.conditions)
    return [{"name": name, "expression": text} for name, text in conditions.items()]


def _holds(present: Object, wanted: Object) -> bool:
    """Compare what we wrote; the server adds fields of its own."""
    return all(present.get(field) == value for field, value in wanted.items())
