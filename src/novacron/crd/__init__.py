"""Types to CustomResourceDefinitions: models with markers in, manifests and reference pages out.

Knows Kubernetes' schemas and no machines. What describes types is here; what writes files is in
``crd.manifest`` and ``crd.reference``, imported only where something is written.
"""

from novacron.crd.kind import AGE, Column, KindInfo, Scale, kind
from novacron.crd.markers import Atomic, ListMap, ListSet, PreserveUnknown, Rule
from novacron.crd.model import (
    CustomResource,
    IntOrString,
    Model,
    ObjectMeta,
    PositiveQuantity,
    Quantity,
)

__all__ = [
    "AGE",
    "Atomic",
    "Column",
    "CustomResource",
    "IntOrString",
    "KindInfo",
    "ListMap",
    "ListSet",
    "Model",
    "ObjectMeta",
    "PositiveQuantity",
    "PreserveUnknown",
    "Quantity",
    "Rule",
    "Scale",
    "kind",
]
