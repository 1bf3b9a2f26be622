"""What a VirtualMachine's affinity, tolerations and devices mean to the core.

Reads a template as the API server stores it. Where an entry of a list says nothing, Kubernetes'
own rules for pods say what that means.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from novacron.core.affinity import (
    Affinity,
    HostTerm,
    MachineTerm,
    Neighbour,
    PreferredHosts,
    PreferredMachines,
    Requirement,
    Selector,
    Toleration,
)
from novacron.core.errors import Rejected
from novacron.core.wanted_device import WantedDevice

__all__ = [
    "affinity_of",
    "neighbour_of",
    "tolerations_of",
    "wanted_devices_of",
]

Object = dict[str, Any]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NAME_FIELD = "metadata.name"


def neighbour_of(obj: Object) -> Neighbour:
    """Return what the machine of an object is to those beside it."""
    metadata, template = obj["metadata"], obj["spec"]["template"]
    labels = (template.get("metadata") or {}).get("labels") or {}
    namespace = metadata["namespace"]
    return Neighbour(namespace, labels, affinity_of(template["spec"], namespace, labels))


def affinity_of(spec: Object, namespace: str, labels: Mapping[str, str]) -> Affinity | None:
    """Return the rules of a template for a machine with these labels, None without any."""
    written = spec.get("affinity")
    if not written:
        return None
    hosts, near, apart = (
        written.get(name) or {} for name in ("nodeAffinity", "podAffinity", "podAntiAffinity")
    )
    required = hosts.get(REQUIRED)

    def terms(rules: Object) -> tuple[MachineTerm, ...]:
        return tuple(_machine_term(each, namespace, labels) for each in rules.get(REQUIRED) or ())

    def wishes(rules: Object) -> tuple[PreferredMachines, ...]:
        return tuple(
            PreferredMachines(
                each["weight"], _machine_term(each["podAffinityTerm"], namespace, labels)
            )
            for each in rules.get(PREFERRED) or ()
        )

    return Affinity(
        hosts=None if required is None else tuple(map(_host_term, required["nodeSelectorTerms"])),
        better_hosts=tuple(_preferred_hosts(hosts.get(PREFERRED) or ())),
        near=terms(near),
        apart=terms(apart),
        rather_near=wishes(near),
        rather_apart=wishes(apart),
    )


def tolerations_of(spec: Object) -> tuple[Toleration, ...]:
    """Return the taints a template does not mind."""
    return tuple(
        Toleration(
            key=each.get("key") or None,
            # Without an operator the value is compared, and no value is the empty one.
            value=None if each.get("operator") == "Exists" else each.get("value") or "",
            effect=each.get("effect") or None,
            seconds=each.get("tolerationSeconds"),
        )
        for each in spec.get("tolerations") or ()
    )


def wanted_devices_of(spec: Object) -> tuple[WantedDevice, ...]:
    """Return the hardware a template asks for."""
    return tuple(
        WantedDevice(
            each["type"],
            each.get("vendor") or None,
            each.get("model") or None,
            each.get("count", 1),
        )
        for each in spec.get("devices") or ()
    )


def _preferred_hosts(written: Iterable[Object]) -> Iterator[PreferredHosts]:
    for each in written:
        term = _host_term(each["preference"])
        if not term.is_empty:  # as in Kubernetes, one that demands nothing changes nothing
            yield PreferredHosts(each["weight"], term)


def _host_term(written: Object) -> HostTerm:
    fields = tuple(map(_requirement, written.get("matchFields") or ()))
    for each in fields:
        if each.key != NAME_FIELD:
            raise Rejected(
                f"matchFields knows only {NAME_FIELD}, not {each.key}", reason="InvalidSpec"
            )
    return HostTerm(tuple(map(_requirement, written.get("matchExpressions") or ())), fields)


def _machine_term(written: Object, namespace: str, labels: Mapping[str, str]) -> MachineTerm:
    selector = _selector(written.get("labelSelector"))
    if selector is not None:
        own = tuple(_own_labels(written, labels))
        selector = Selector((*selector.requirements, *own)) if own else selector
    named = frozenset(written.get("namespaces") or ())
    chosen = _selector(written.get("namespaceSelector"))
    if not named and chosen is None:
        named = frozenset((namespace,))
    return MachineTerm(selector, written.get("topologyKey") or None, named, chosen)


def _own_labels(written: Object, labels: Mapping[str, str]) -> Iterator[Requirement]:
    """Return the demands that come from the machine's own labels, for those it has."""
    for name, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
        for key in written.get(name) or ():
            if key in labels:
                yield Requirement(key, operator, (labels[key],))


def _selector(written: Object | None) -> Selector | None:
    if written is None:
        return None
    equal = (
        Requirement(key, "In", (value,))
        for key, value in sorted((written.get("matchLabels") or {}).items())
    )
    return Selector((*equal, *map(_requirement, written.get("matchExpressions") or ())))


def _requirement(written: Object) -> Requirement:
    return Requirement(written["key"], written["operator"], tuple(written.get("values") or ()))
