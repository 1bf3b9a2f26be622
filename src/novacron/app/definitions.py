"""The types of all families, and the definitions generated from them."""

import importlib
from collections.abc import Collection
from typing import Any

from novacron.app.registry import chosen
from novacron.crd import CustomResource
from novacron.crd.manifest import manifest
from novacron.families.novacron.kinds import Host

__all__ = ["crds", "kinds"]

Versions = tuple[type[CustomResource], ...]


def kinds(families: Collection[str]) -> tuple[Versions, ...]:
    """Return every kind of these families with all its versions; hosts come with each family."""
    found: dict[str, Versions] = {}
    for family in chosen(families):
        own: tuple[Versions, ...] = importlib.import_module(family.kinds).RESOURCES
        hosts: Versions = (Host,)
        for versions in (*own, hosts):
            found[versions[0].__kind__.full_name] = versions
    return tuple(found.values())


def crds(families: Collection[str]) -> list[dict[str, Any]]:
    """Return the definitions of all kinds of these families."""
    return [manifest(*versions) for versions in kinds(families)]
