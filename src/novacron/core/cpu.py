"""A host's CPU as far as it decides where a running machine can move."""

from dataclasses import dataclass

__all__ = ["Cpu"]


@dataclass(frozen=True, slots=True)
class Cpu:
    """What guests see of a CPU, and how they run on it."""

    model: str
    features: frozenset[str] = frozenset()
    accelerator: str = ""

    def can_take_over(self, other: "Cpu") -> bool:
        """Say whether a guest that runs on the other CPU would find all it uses on this one."""
        if self.accelerator != other.accelerator:
            return False
        if not self.features or not other.features:
            return self.model == other.model
        return self.features >= other.features
