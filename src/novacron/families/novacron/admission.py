"""What is checked when a VirtualMachine arrives, beyond what its definition says."""

from dataclasses import dataclass
from typing import Any

from novacron.core.quantity import mib

__all__ = ["VirtualMachineAdmission"]

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class VirtualMachineAdmission:
    """Checks what depends on a setting of the operator; the rest is in the definition."""

    minimum_memory: str

    def problems(self, obj: Object, old: Object | None) -> list[str]:
        """Return what is wrong with an object; what was accepted before stays accepted."""
        memory = _memory(obj)
        if old is not None and memory == _memory(old):
            return []
        if mib(memory) < mib(self.minimum_memory):
            field = "spec.template.spec.resources.memory"
            return [f"{field}: must be at least {self.minimum_memory}, not {memory}"]
        return []


def _memory(obj: Object) -> str | int:
    memory: str | int = obj["spec"]["template"]["spec"]["resources"]["memory"]
    return memory
