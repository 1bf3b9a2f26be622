"""Where a machine may run: affinity and tolerations in the words of Kubernetes' pods.

"Pod" in these field names is the specification's word: here it means another VirtualMachine, and
"node" means a Host.
"""

from typing import Annotated, Literal

from pydantic import Field

from novacron.crd import Atomic, Model, Rule
from novacron.families.shared_types import Labels

__all__ = [
    "Affinity",
    "LabelRequirement",
    "LabelSelector",
    "NodeAffinity",
    "NodeRequirement",
    "NodeSelector",
    "NodeSelectorTerm",
    "PodAffinity",
    "PodAffinityTerm",
    "PreferredNodeTerm",
    "PreferredPodTerm",
    "Toleration",
]

Key = Annotated[str, Field(min_length=1, max_length=317)]
Value = Annotated[str, Field(max_length=63)]
Values = Annotated[list[Value], Atomic(), Field(max_length=64)]
Weight = Annotated[int, Field(ge=1, le=100)]
Keys = Annotated[list[Key], Atomic(), Field(max_length=32)]


class LabelRequirement(Model):
    """One demand on a label."""

    __rules__ = (
        Rule(
            "self.operator in ['In', 'NotIn'] ? (has(self.values) && self.values.size() > 0)"
            " : (!has(self.values) || self.values.size() == 0)",
            "operator In and NotIn need values, Exists and DoesNotExist take none",
        ),
    )

    key: Key
    """The label's key."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    """How the label is compared."""
    values: Values = []
    """What the label is compared with."""


class LabelSelector(Model):
    """Which objects: those whose labels meet all of this; an empty selector means all of them."""

    match_labels: Labels = {}
    """Labels and the values they must have."""
    match_expressions: Annotated[list[LabelRequirement], Atomic(), Field(max_length=32)] = []
    """More demands on labels."""


class NodeRequirement(Model):
    """One demand on a host's label or field."""

    __rules__ = (
        Rule(
            "self.operator in ['Exists', 'DoesNotExist'] ? (!has(self.values) ||"
            " self.values.size() == 0) : (has(self.values) && self.values.size() > 0)",
            "operator Exists and DoesNotExist take no values, the others need some",
        ),
        Rule(
            "!(self.operator in ['Gt', 'Lt']) || !has(self.values)"
            " || (self.values.size() == 1 && self.values[0].matches('^-?[0-9]+$'))",
            "operator Gt and Lt take exactly one whole number in values",
        ),
    )

    key: Key
    """The label's key, or metadata.name for the host's name."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    """How it is compared."""
    values: Values = []
    """What it is compared with."""


class NodeSelectorTerm(Model):
    """Hosts that meet all of these demands."""

    match_expressions: Annotated[list[NodeRequirement], Atomic(), Field(max_length=32)] = []
    """Demands on the host's labels."""
    match_fields: Annotated[list[NodeRequirement], Atomic(), Field(max_length=32)] = []
    """Demands on the host's fields; metadata.name is the one there is."""


class NodeSelector(Model):
    """Hosts that meet at least one of these terms."""

    node_selector_terms: Annotated[
        list[NodeSelectorTerm], Atomic(), Field(min_length=1, max_length=32)
    ]
    """The terms; one that is met is enough."""


class PreferredNodeTerm(Model):
    """A term that makes a host better, not the only choice."""

    weight: Weight
    """How much better, 1 to 100."""
    preference: NodeSelectorTerm
    """The term."""


class NodeAffinity(Model):
    """Which hosts the machine must or should run on."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    """Hosts that do not meet this are never chosen."""
    preferred_during_scheduling_ignored_during_execution: Annotated[
        list[PreferredNodeTerm], Atomic(), Field(max_length=32)
    ] = []
    """Hosts that meet more of this are chosen first."""


class PodAffinityTerm(Model):
    """Other machines, and how near is near."""

    label_selector: LabelSelector | None = None
    """Which other machines, by their labels."""
    topology_key: Key | None = None
    """The host label whose equal values mean "together"; without it, together is the same host."""
    namespaces: Annotated[list[Value], Atomic(), Field(max_length=64)] = []
    """Namespaces of the other machines; without any, the machine's own."""
    namespace_selector: LabelSelector | None = None
    """Namespaces of the other machines, by their labels."""
    match_label_keys: Keys = []
    """Labels of this machine whose values the other machines must have too."""
    mismatch_label_keys: Keys = []
    """Labels of this machine whose values the other machines must not have."""


class PreferredPodTerm(Model):
    """A term that makes a host better, not the only choice."""

    weight: Weight
    """How much better, 1 to 100."""
    pod_affinity_term: PodAffinityTerm
    """The term."""


class PodAffinity(Model):
    """Which other machines this one must or should be near to, or away from."""

    required_during_scheduling_ignored_during_execution: Annotated[
        list[PodAffinityTerm], Atomic(), Field(max_length=32)
    ] = []
    """Hosts that do not meet all of this are never chosen."""
    preferred_during_scheduling_ignored_during_execution: Annotated[
        list[PreferredPodTerm], Atomic(), Field(max_length=32)
    ] = []
    """Hosts that meet more of this are chosen first."""


class Affinity(Model):
    """What draws the machine to hosts and other machines, or keeps it away from them."""

    node_affinity: NodeAffinity | None = None
    """Hosts."""
    pod_affinity: PodAffinity | None = None
    """Other machines to be near to."""
    pod_anti_affinity: PodAffinity | None = None
    """Other machines to be away from."""


class Toleration(Model):
    """A host's taint that does not keep this machine away."""

    __rules__ = (
        Rule(
            "!has(self.operator) || self.operator != 'Exists' || !has(self.value)"
            " || self.value == ''",
            "operator Exists takes no value",
            field_path=".value",
        ),
        Rule(
            "has(self.key) && self.key != '' || (has(self.operator) && self.operator == 'Exists')",
            "without a key, operator must be Exists: then every taint is tolerated",
        ),
        Rule(
            "!has(self.tolerationSeconds) || (has(self.effect) && self.effect == 'NoExecute')",
            "with tolerationSeconds, effect must be NoExecute: no other taint sends machines away",
            field_path=".effect",
        ),
    )

    key: Annotated[str, Field(max_length=317)] | None = None
    """The taint's key."""
    operator: Literal["Exists", "Equal"] | None = None
    """How the value is compared; without it, Equal."""
    value: Value | None = None
    """The taint's value."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """The taint's effect; without it, every effect."""
    toleration_seconds: int | None = None
    """For how long a taint is tolerated before the machine moves away; without it, for ever. Only
    with effect NoExecute."""
