"""What the command line is told by ``app``, the one place that knows everything."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import click

__all__ = ["Manifests", "Wiring", "wiring_of"]

Manifests = Callable[[Collection[str]], list[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Wiring:
    """Manifests by API families, and the command that runs our operator."""

    crds: Manifests
    rbac: Manifests
    operator: tuple[str, ...]


def wiring_of(context: click.Context) -> Wiring:
    """Return the wiring that the program was started with."""
    found = context.find_object(Wiring)
    assert found is not None
    return found
