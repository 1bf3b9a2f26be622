"""Names by which this family knows its own: finalizer, labels, annotations."""

__all__ = [
    "ABANDON",
    "BOOT_SOURCE",
    "BOOT_SOURCE_TYPE",
    "CDROM_EJECTED",
    "CLASS_AS_MADE",
    "FINALIZER",
    "KUBEVIRT_CONFIG",
    "MACHINE",
    "MADE_IN",
    "MANAGED_BY",
    "MANAGER",
    "OS_INSTALLED",
    "owned_labels",
]

FINALIZER = "machine.vitistack.io/cleanup"

MACHINE = "vitistack.io/machine"
MANAGED_BY = "vitistack.io/managed-by"
MANAGER = "kubevirt-operator"

# Which KubeVirt cluster a machine is on.
KUBEVIRT_CONFIG = "vitistack.io/kubevirt-config"
# Which one it was made in, as we wrote it down.
MADE_IN = "vitistack.io/made-in"
# What its class said when it was made, as we wrote it down.
CLASS_AS_MADE = "vitistack.io/class-as-made"
# That a machine may be forgotten whose cluster cannot be reached any more.
ABANDON = "vitistack.io/abandon"
# Upstream's signals: the guest is installed, or whoever installs wants the medium out.
OS_INSTALLED = "vitistack.io/os-installed"
CDROM_EJECTED = "vitistack.io/cdrom-ejected"
# Upstream's way to say that os.imageID is a medium, and where that comes from.
BOOT_SOURCE = "kubevirt.io/boot-source"
BOOT_SOURCE_TYPE = "kubevirt.io/boot-source-type"


def owned_labels(machine: str) -> dict[str, str]:
    """Return the labels of whatever is made for a machine."""
    return {MANAGED_BY: MANAGER, MACHINE: machine}
