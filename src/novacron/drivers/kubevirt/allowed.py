"""What KubeVirt's own settings let machines be, as far as we may read them."""

from collections.abc import Iterable
from fnmatch import fnmatchcase

from novacron.core.errors import Rejected
from novacron.core.machine import MachinePlan
from novacron.runtime.resource import Object

__all__ = ["check_machine_type", "machine_types"]

AMD64 = "amd64"
# What KubeVirt allows on amd64 unless its settings say otherwise.
USUAL = ("q35*", "pc-q35*")


def check_machine_type(plan: MachinePlan, settings: Iterable[Object]) -> None:
    """Raise Rejected where a cluster is known to have no such machine.

    KubeVirt would refuse it too, but its sentence does not say where that is set.
    """
    wanted, allowed = plan.hardware.machine_type, machine_types(settings)
    if wanted is None or allowed is None or any(fnmatchcase(wanted, each) for each in allowed):
        return
    raise Rejected(
        f"this KubeVirt cluster allows no machine of type {wanted}, only {', '.join(allowed)}: "
        "leave spec.domain.machine.type out or set it to q35, or have "
        "architectureConfiguration.amd64.emulatedMachines extended in the KubeVirt configuration",
        reason="MachineTypeNotAllowed",
    )


def machine_types(settings: Iterable[Object]) -> tuple[str, ...] | None:
    """Return which types of machines are allowed, as patterns; None where nobody can tell."""
    for each in settings:
        said = (each.get("spec") or {}).get("configuration") or {}
        arch = (each.get("status") or {}).get("defaultArchitecture") or AMD64
        own = (said.get("architectureConfiguration") or {}).get(arch) or {}
        # The old place counts, where it is used at all.
        found = said.get("emulatedMachines") or own.get("emulatedMachines")
        if found or arch == AMD64:
            return tuple(found or USUAL)
    return None
