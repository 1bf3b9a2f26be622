"""What the command line is told by ``app``, the one place that knows everything."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import click

__all__ = ["Definitions", "Manifests", "Wiring", "wiring_of"]

Manifests = Callable[[Collection[str]], list[dict[str, Any]]]
# The second argument is the least memory a machine may have.
Definitions = Callable[[Collection[str], str], list[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Wiring:
    """Manifests by API families, and the command that runs our operator."""

    crds: Definitions
    rbac: Manifests
    operator: tuple[str, ...]


def wiring_of(context: click.Context) -> Wiring:
    """Return the wiring that the program was started with."""
    found = context.find_object(Wiring)
    assert found is not None
    return found
