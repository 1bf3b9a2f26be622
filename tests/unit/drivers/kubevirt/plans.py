"""Plans that the tests of the KubeVirt driver begin with."""

from novacron.core.declaration import Declaration
from novacron.core.machine import MachinePlan, MachineRef, Nic, Resources

UID = "0b0e9f5c-0000-4000-8000-000000000001"
REF = MachineRef(UID, "default", "web", "kubevirt://")
DECLARED = Declaration(
    "vitistack.io/v1alpha1",
    "Machine",
    "web",
    UID,
    {"vitistack.io/managed-by": "kubevirt-operator", "vitistack.io/machine": "web"},
)
SIZE = Resources(2, 4096, 40960)


def plan(**changed: object) -> MachinePlan:
    """Return a plan of a medium machine on the pods' network."""
    nic = Nic("", name="default", mac="02:00:00:00:00:01")
    given: dict[str, object] = {"nics": (nic,), "declared_by": DECLARED, **changed}
    return MachinePlan(REF, SIZE, "", **given)  # type: ignore[arg-type]
