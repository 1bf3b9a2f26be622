"""What a KubeVirt cluster is set up to do, as its own configuration says."""

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from novacron.core.errors import Rejected

__all__ = ["AS_USUAL", "Settings", "settings_of"]

Object = dict[str, Any]

# What KubeVirt allows on amd64 unless its configuration says otherwise.
USUAL_MACHINES = ("q35*", "pc-q35*")


@dataclass(frozen=True, slots=True)
class Settings:
    """What the cluster can do for machines that run.

    ``moves_by_itself`` says that it migrates machines whose change needs that, and ``encrypts``
    that what it migrates is encrypted on the way. No types of machines are known where the
    configuration may not be read: then KubeVirt itself refuses.
    """

    live_update: bool = True
    moves_by_itself: bool = True
    volumes_pluggable: bool = True
    disks_expandable: bool = True
    machine_types: tuple[str, ...] | None = None
    encrypts: bool = True

    def require_encryption(self, *, wanted: bool) -> None:
        """Refuse a machine that is to travel encrypted where it would travel in the clear."""
        if wanted and not self.encrypts:
            raise Rejected(
                "spec.migrationPolicy.encrypted is true, and this KubeVirt cluster moves machines "
                "in the clear: have configuration.migrations.disableTLS taken out of its KubeVirt, "
                "or set encrypted to false",
                reason="MovesNotEncrypted",
            )

    def require_machine_type(self, wanted: str | None) -> None:
        """Refuse a type of machine that the cluster does not allow; ``*`` stands for anything."""
        allowed = self.machine_types
        if wanted is None or allowed is None or any(fnmatchcase(wanted, each) for each in allowed):
            return
        raise Rejected(
            f"this KubeVirt cluster allows no machine of type {wanted}, only "
            f"{', '.join(allowed)}: leave spec.domain.machine.type out or set it to q35, or have "
            "architectureConfiguration.amd64.emulatedMachines extended in the KubeVirt "
            "configuration",
            reason="MachineTypeNotAllowed",
        )


AS_USUAL = Settings()


def settings_of(installed: Iterable[Object]) -> Settings:
    """Return what the installed KubeVirt is set up to do; the usual where nobody can tell."""
    spec: Object = next((each.get("spec") or {} for each in installed), {})
    if not spec:
        return AS_USUAL
    configuration = spec.get("configuration") or {}
    gates = (configuration.get("developerConfiguration") or {}).get("featureGates") or ()
    methods = (spec.get("workloadUpdateStrategy") or {}).get("workloadUpdateMethods") or ()
    by_kind = (configuration.get("architectureConfiguration") or {}).get("amd64") or {}
    # The old place counts, where it is used at all.
    machines = configuration.get("emulatedMachines") or by_kind.get("emulatedMachines")
    return Settings(
        # Without a word about it, recent versions update machines while they run.
        live_update=configuration.get("vmRolloutStrategy", "LiveUpdate") == "LiveUpdate",
        moves_by_itself="LiveMigrate" in methods,
        volumes_pluggable="HotplugVolumes" in gates,
        disks_expandable="ExpandDisks" in gates,
        machine_types=tuple(machines or USUAL_MACHINES),
        encrypts=not (configuration.get("migrations") or {}).get("disableTLS"),
    )
