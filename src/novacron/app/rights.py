"""The rights an operator needs, and no more: each rule names the code that asks for it.

The chart and ``novacron up`` take them from here, and the tests run operators under them.
"""

from collections.abc import Collection
from typing import Any

from novacron.app.registry import HOSTS, Family, chosen
from novacron.runtime.resource import Resource

__all__ = [
    "CERTIFICATES",
    "EVERYWHERE",
    "HAPPENINGS",
    "OPERATOR",
    "OWN",
    "RBAC_API",
    "RECORDS",
    "WEBHOOKS",
    "beyond_machines",
    "far_kubevirt",
    "for_claims",
    "for_machines",
    "installing",
    "rbac",
]

Manifest = dict[str, Any]

OPERATOR = "novacron-operator"
WEBHOOKS = "novacron"
CERTIFICATES = "novacron-webhook-certificates"
# What records in machines are sealed with.
RECORDS = "novacron-records"
RBAC_API = "rbac.authorization.k8s.io/v1"
RBAC_GROUP = "rbac.authorization.k8s.io"
ADMISSION = "admissionregistration.k8s.io"


def _rule(
    group: str, resources: list[str], verbs: list[str], names: list[str] | None = None
) -> Manifest:
    rule: Manifest = {"apiGroups": [group], "resources": resources, "verbs": verbs}
    return rule | ({"resourceNames": names} if names else {})


def _followed(resource: Resource, *more: str) -> list[Manifest]:
    # runtime.reflector lists and watches; runtime.writer patches finalizers, writes statuses.
    return [
        _rule(resource.group, [resource.plural], ["list", "watch", "patch", *more]),
        _rule(resource.group, [f"{resource.plural}/status"], ["update"]),
    ]


# About things that are in no namespace.
EVERYWHERE = [
    *_followed(HOSTS),
    # app.nodes: the labels and taints of a Host's own node
    _rule("", ["nodes"], ["get"]),
    # app.claimed_images: which directory a claim is, for pvc:// images
    _rule("", ["persistentvolumes"], ["get"]),
    # controllers.ledger: how namespaces are labelled, which affinity rules may choose by
    _rule("", ["namespaces"], ["list", "watch"]),
    # runtime.webhook_configuration: filled in, never created. It comes and goes with the roles:
    # one that an operator made anew while it is uninstalled would refuse changes for ever.
    _rule(ADMISSION, ["mutatingwebhookconfigurations"], ["get"], [WEBHOOKS]),
    _rule(ADMISSION, ["validatingwebhookconfigurations"], ["get", "patch"], [WEBHOOKS]),
]
# runtime.events: beside the objects they are about; those about hosts in the namespace default.
HAPPENINGS = [_rule("", ["events"], ["create", "patch"])]
# In the operator's own namespace.
OWN = [
    # runtime.leases: heartbeats, leadership and shards
    _rule("coordination.k8s.io", ["leases"], ["get", "list", "create", "update", "delete"]),
    # runtime.certificates and runtime.shared_key: a plain creation cannot be limited by name.
    # app.libvirt gets the credentials of hosts, which users name as they like.
    _rule("", ["secrets"], ["create", "get"]),
    _rule("", ["secrets"], ["patch"], [CERTIFICATES]),
    # app.images: what the cluster adds to the catalogue of images, under a name that is a setting
    _rule("", ["configmaps"], ["get"]),
]


def for_claims(families: Collection[str]) -> list[Manifest]:
    """Return the rights to claims that machines of these families may have images from."""
    # app.claimed_images: which volume it is, for pvc:// images of machines that we make ourselves
    ours = any(not family.made_in_kubevirt for family in chosen(families))
    return [_rule("", ["persistentvolumeclaims"], ["get"])] if ours else []


def for_machines(families: Collection[str]) -> list[Manifest]:
    """Return the rights to the machines of these families, wherever they are declared."""
    rules: list[Manifest] = []
    for family in chosen(families):
        if family.made_in_kubevirt:
            rules += _in_kubevirt()
        else:
            rules += for_claims([family.name])
        # controllers.placement writes records, and asks what became of one that got no answer
        for resource, _ in family.machines:
            rules += _followed(resource, "get", "update")
        # controllers.related
        rules += _related(family, namespaced=True)
    return rules


def beyond_machines(families: Collection[str]) -> list[Manifest]:
    """Return the rights of these families to what is in no namespace of machines."""
    rules: list[Manifest] = []
    for family in chosen(families):
        if family.made_in_kubevirt:
            rules += _about_kubevirt()
        rules += _related(family, namespaced=False)
    return rules


def _related(family: Family, *, namespaced: bool) -> list[Manifest]:
    related = [each for each in family.related if each.namespaced is namespaced]
    reported = [each for each, _ in family.reported if each.namespaced is namespaced]
    return [
        *(_rule(each.group, [each.plural], ["list", "watch"]) for each in related),
        # controllers.referred
        *(_rule(each.group, [f"{each.plural}/status"], ["update"]) for each in reported),
    ]


def _about_kubevirt() -> list[Manifest]:
    """Return what drivers.kubevirt has to know of a cluster as a whole."""
    return [
        _rule("kubevirt.io", ["kubevirts"], ["list", "watch"]),
        _rule("storage.k8s.io", ["storageclasses"], ["list", "watch"]),
        _rule("cdi.kubevirt.io", ["storageprofiles"], ["get"]),
        # drivers.kubevirt.facts: a Host of this driver; drivers.kubevirt.nodes: which are dead
        _rule("", ["nodes"], ["list", "watch"]),
    ]


def _in_kubevirt() -> list[Manifest]:
    """Return what drivers.kubevirt does where machines are declared."""
    made = ["get", "list", "watch", "create", "patch", "delete"]
    return [
        _rule("kubevirt.io", ["virtualmachines"], [*made, "update"]),
        _rule("kubevirt.io", ["virtualmachineinstances"], ["list", "watch", "delete"]),
        _rule(
            "kubevirt.io",
            ["virtualmachineinstancemigrations"],
            ["list", "watch", "create", "delete"],
        ),
        _rule(
            "snapshot.kubevirt.io",
            ["virtualmachinesnapshots", "virtualmachinerestores"],
            ["list", "watch", "create", "delete"],
        ),
        _rule(
            "subresources.kubevirt.io",
            [f"virtualmachines/{what}" for what in ("stop", "addvolume", "removevolume")],
            ["update"],
        ),
        _rule("", ["persistentvolumeclaims"], made),
        # What the scheduler says of those that it has no node for.
        _rule("", ["pods"], ["list", "watch"]),
        _rule("cdi.kubevirt.io", ["datavolumes"], ["get", "list", "watch", "create", "delete"]),
        _rule("k8s.cni.cncf.io", ["network-attachment-definitions"], ["get", "create", "update"]),
        # drivers.kubevirt.guest_data: cloud-init that refers to one
        _rule("", ["configmaps"], ["get"]),
        # What guests are told about themselves, and the kubeconfigs of other clusters.
        _rule("", ["secrets"], ["get", "create", "update", "delete"]),
    ]


def far_kubevirt() -> list[Manifest]:
    """Return what the kubeconfig of another cluster has to allow there."""
    first = _rule("", ["namespaces"], ["get"], ["kube-system"])  # by whose UID clusters are known
    # Nothing there goes by itself with what declared it here.
    attachments = _rule("k8s.cni.cncf.io", ["network-attachment-definitions"], ["list", "delete"])
    return [*_in_kubevirt(), *_about_kubevirt(), attachments, first]


def installing(definitions: Collection[str]) -> list[Manifest]:
    """Return the rights to install and upgrade these definitions, as ``novacron crd`` does."""
    group, resources = "apiextensions.k8s.io", ["customresourcedefinitions"]
    # Creation can be limited by name here: an apply says the name before anything is made.
    return [_rule(group, resources, ["create", "get", "patch"], sorted(definitions))]


def rbac(families: Collection[str], namespace: str = "novacron-system") -> list[Manifest]:
    """Return what must be there before an operator runs.

    Its namespace, its identity with all its rights, and the webhook configuration it fills in.
    """
    subjects = [
        {"kind": "User", "apiGroup": RBAC_GROUP, "name": OPERATOR},
        {"kind": "ServiceAccount", "name": OPERATOR, "namespace": namespace},
    ]
    local = {"name": OPERATOR, "namespace": namespace}
    everywhere = {"name": OPERATOR}
    rules = [*EVERYWHERE, *beyond_machines(families), *for_machines(families), *HAPPENINGS]
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": local},
        _role("ClusterRole", everywhere, rules),
        _binding("ClusterRole", everywhere, subjects),
        _role("Role", local, OWN),
        _binding("Role", local, subjects),
        {
            "apiVersion": f"{ADMISSION}/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": WEBHOOKS},
        },
    ]


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
