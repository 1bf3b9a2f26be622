"""The rights an operator needs, and no more: each rule names the code that asks for it."""

from collections.abc import Collection
from typing import Any

from novacron.app.registry import HOSTS, chosen
from novacron.runtime.resource import Resource

__all__ = ["OPERATOR", "rbac"]

Manifest = dict[str, Any]

OPERATOR = "novacron-operator"
WEBHOOKS = "novacron"
CERTIFICATES = "novacron-webhook-certificates"
RBAC_API = "rbac.authorization.k8s.io/v1"
RBAC_GROUP = "rbac.authorization.k8s.io"


def rbac(families: Collection[str], namespace: str = "novacron-system") -> list[Manifest]:
    """Return the operator's namespace, roles and their bindings to user and service account."""
    subjects = [
        {"kind": "User", "apiGroup": RBAC_GROUP, "name": OPERATOR},
        {"kind": "ServiceAccount", "name": OPERATOR, "namespace": namespace},
    ]
    local = {"name": OPERATOR, "namespace": namespace}
    everywhere = {"name": OPERATOR}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": local},
        _role("ClusterRole", everywhere, _cluster_rules(families)),
        _binding("ClusterRole", everywhere, subjects),
        _role("Role", local, _local_rules()),
        _binding("Role", local, subjects),
    ]


def _cluster_rules(families: Collection[str]) -> list[Manifest]:
    kinds = [resource for family in chosen(families) for resource, _ in family.machines]
    rules = [rule for resource in (*kinds, HOSTS) for rule in _kind_rules(resource)]
    admission = "admissionregistration.k8s.io"
    configurations = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"]
    return [
        *rules,
        # app.nodes: the labels and taints of a Host's own node
        _rule("", ["nodes"], ["get"]),
        # runtime.events: in the namespaces of the objects they are about
        _rule("", ["events"], ["create", "patch"]),
        # runtime.webhook_configuration: creation cannot be limited by name
        _rule(admission, configurations, ["create"]),
        _rule(admission, configurations, ["get", "patch"], [WEBHOOKS]),
    ]


def _kind_rules(resource: Resource) -> list[Manifest]:
    # runtime.reflector lists and watches; runtime.writer writes finalizers, records and statuses.
    return [
        _rule(resource.group, [resource.plural], ["get", "list", "watch", "patch", "update"]),
        _rule(resource.group, [f"{resource.plural}/status"], ["update"]),
    ]


def _local_rules() -> list[Manifest]:
    return [
        # runtime.leases: heartbeats, leadership and shards
        _rule("coordination.k8s.io", ["leases"], ["get", "list", "create", "update", "delete"]),
        # runtime.certificates: creation cannot be limited by name
        _rule("", ["secrets"], ["create"]),
        _rule("", ["secrets"], ["update", "patch"], [CERTIFICATES]),
        # app.libvirt: credentials of hosts, which users name as they like
        _rule("", ["secrets"], ["get"]),
    ]


def _rule(
    group: str, resources: list[str], verbs: list[str], names: list[str] | None = None
) -> Manifest:
    rule: Manifest = {"apiGroups": [group], "resources": resources, "verbs": verbs}
    return rule | ({"resourceNames": names} if names else {})


def _role(kind: str, metadata: Manifest, rules: list[Manifest]) -> Manifest:
    return {"apiVersion": RBAC_API, "kind": kind, "metadata": metadata, "rules": rules}


def _binding(kind: str, metadata: Manifest, subjects: list[Manifest]) -> Manifest:
    return {
        "apiVersion": RBAC_API,
        "kind": f"{kind}Binding",
        "metadata": metadata,
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": kind, "name": OPERATOR},
        "subjects": subjects,
    }
