"""Sizes as this family writes them: CPUs, memory, and amounts that forgot their unit."""

from typing import Annotated

from pydantic import Field

from novacron.crd import Model, PositiveQuantity, Rule

__all__ = ["MAX_CPUS", "ClassCpu", "Cpu", "FlatCpu", "Memory", "Resources", "Size"]

MAX_CPUS = 1024
_LEAST = "1Mi"

Size = Annotated[
    PositiveQuantity,
    Rule(
        f"!isQuantity(string(self)) || !quantity(string(self)).isLessThan(quantity('{_LEAST}'))",
        f"must be at least {_LEAST}: a number without a unit counts bytes; write 20Gi, not 20",
    ),
]
"""An amount of memory or disk."""


def _total(threads: str) -> Rule:
    """Return the rule on the product; ``threads`` is what the threads of a core are called."""
    return Rule(
        f"self.?cores.orValue(1) * self.?sockets.orValue(1) * self.?{threads}.orValue(1)"
        f" <= {MAX_CPUS}",
        f"cores times sockets times threads must be at most {MAX_CPUS}",
    )


class Cpu(Model):
    """CPUs instead of the template's, each field by itself."""

    __rules__ = (_total("threads"),)

    cores: Annotated[int, Field(ge=1, le=256)] | None = None
    """Cores of each socket; without it, the template's."""
    threads: Annotated[int, Field(ge=1, le=8)] | None = None
    """Threads of each core; without it, the template's."""
    sockets: Annotated[int, Field(ge=1, le=256)] | None = None
    """Sockets; without it, the template's."""


class ClassCpu(Model):
    """The CPUs of machines of a class."""

    __rules__ = (_total("threads"),)

    cores: Annotated[int, Field(ge=1, le=256)]
    """Cores of each socket."""
    sockets: Annotated[int, Field(ge=0, le=256)] | None = None
    """Sockets; without it or with 0, one."""
    threads: Annotated[int, Field(ge=0, le=8)] | None = None
    """Threads of each core; without it or with 0, one."""


class FlatCpu(Model):
    """Upstream's word for resources.cpu."""

    __rules__ = (_total("threadsPerCore"),)

    cores: Annotated[int, Field(ge=1, le=256)] | None = None
    """Cores of each socket."""
    threads_per_core: Annotated[int, Field(ge=1, le=8)] | None = None
    """Threads of each core."""
    sockets: Annotated[int, Field(ge=1, le=16)] | None = None
    """Sockets."""


class Memory(Model):
    """Memory instead of the template's."""

    size: Size
    """How much the guest has."""


class Resources(Model):
    """What the machine has instead of what its template says."""

    cpu: Cpu | None = None
    """CPUs."""
    memory: Memory | None = None
    """Memory."""
