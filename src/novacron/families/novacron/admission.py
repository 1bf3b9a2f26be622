"""What is checked and filled in when a VirtualMachine arrives, beyond what its schema says."""

from dataclasses import dataclass
from typing import Any

from novacron.core.quantity import mib
from novacron.families.novacron.translate import VirtualMachineKind

__all__ = ["VirtualMachineAdmission"]

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class VirtualMachineAdmission:
    """Adds our finalizer, which saves the operator a write, and checks what is a setting."""

    minimum_memory: str

    def mutate(self, obj: Object, old: Object | None) -> Object | None:
        """Return the object with our finalizer, or None when there is nothing to add."""
        metadata = obj["metadata"]
        finalizers = metadata.get("finalizers") or []
        if old is not None or VirtualMachineKind.finalizer in finalizers:
            return None
        changed = {**metadata, "finalizers": [*finalizers, VirtualMachineKind.finalizer]}
        return {**obj, "metadata": changed}

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
