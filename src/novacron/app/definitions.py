"""The types of all families, and the definitions generated from them."""

import importlib
from collections.abc import Collection
from typing import Any

from novacron.app.registry import chosen
from novacron.cli.crd import MINIMUM_MEMORY_NOTE
from novacron.core.quantity import mib
from novacron.crd import CustomResource
from novacron.crd.manifest import manifest
from novacron.families.novacron.kinds import Host
from novacron.families.novacron.template_types import MINIMUM_MEMORY, at_least

__all__ = ["crds", "definition", "kinds"]

Versions = tuple[type[CustomResource], ...]
# Whoever removes a definition removes every object of its kind: no tool may do that on its own.
KEEP = {
    "helm.sh/resource-policy": "keep",
    "argocd.argoproj.io/sync-options": "Prune=false,Delete=false",
}


def kinds(families: Collection[str]) -> tuple[Versions, ...]:
    """Return every kind of these families with all its versions; hosts come with each family."""
    found: dict[str, Versions] = {}
    for family in chosen(families):
        own: tuple[Versions, ...] = importlib.import_module(family.kinds).RESOURCES
        hosts: Versions = (Host,)
        for versions in (*own, hosts):
            found[versions[0].__kind__.full_name] = versions
    return tuple(found.values())


def definition(*versions: type[CustomResource]) -> dict[str, Any]:
    """Return the definition of one kind as we install it."""
    made = manifest(*versions)
    return made | {"metadata": made["metadata"] | {"annotations": KEEP}}


def crds(families: Collection[str], minimum_memory: str = MINIMUM_MEMORY) -> list[dict[str, Any]]:
    """Return the definitions of all kinds of these families.

    Machines smaller than the minimum are refused; a smaller one suits tests with small guests.
    """
    if mib(minimum_memory) < 1:
        raise ValueError(f"the least memory of a machine cannot be {minimum_memory}")
    made = [definition(*versions) for versions in kinds(families)]
    if minimum_memory == MINIMUM_MEMORY:
        return made
    for each in made:
        each["metadata"]["annotations"] = KEEP | {MINIMUM_MEMORY_NOTE: minimum_memory}
    usual, wanted = at_least(MINIMUM_MEMORY).stanza(), at_least(minimum_memory).stanza()
    return [_with(each, usual, wanted) for each in made]


def _with(part: Any, usual: Any, wanted: Any) -> Any:  # noqa: ANN401 - any part of a manifest
    if part == usual:
        return wanted
    if isinstance(part, dict):
        return {name: _with(value, usual, wanted) for name, value in part.items()}
    return [_with(value, usual, wanted) for value in part] if isinstance(part, list) else part
