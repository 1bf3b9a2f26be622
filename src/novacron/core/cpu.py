"""A host's CPU as far as it decides where a running machine can move."""

import hashlib
from dataclasses import dataclass

__all__ = ["Cpu"]


@dataclass(frozen=True, slots=True)
class Cpu:
    """What guests see of a CPU, and how they run on it."""

    model: str
    features: frozenset[str] = frozenset()
    accelerator: str = ""

    @property
    def key(self) -> str:
        """A word for it, so that a machine can say which CPU it was started with."""
        said = "\n".join((self.accelerator, *sorted(self.features)))
        return f"{self.model}-{hashlib.sha256(said.encode()).hexdigest()[:8]}"

    def can_take_over(self, other: "Cpu") -> bool:
        """Say whether a guest that runs on the other CPU would find all it uses on this one."""
        if self.accelerator != other.accelerator:
            return False
        if not self.features or not other.features:
            return self.model == other.model
        return self.features >= other.features
