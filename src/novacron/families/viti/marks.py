"""Names by which this family knows its own: finalizer, labels, annotations, claims, Secrets."""

__all__ = [
    "ABANDON",
    "BOOT_SOURCE",
    "BOOT_SOURCE_TYPE",
    "CDROM_EJECTED",
    "CLUSTER_NAME",
    "FINALIZER",
    "KUBEVIRT_CONFIG",
    "MACHINE",
    "MACHINE_TEMPLATE",
    "MADE_IN",
    "MANAGED_BY",
    "MANAGER",
    "OS_INSTALLED",
    "claim_name",
    "iso_claim_name",
    "owned_labels",
    "seed_secret_name",
]

FINALIZER = "machine.vitistack.io/cleanup"

MACHINE = "vitistack.io/machine"
MANAGED_BY = "vitistack.io/managed-by"
MANAGER = "kubevirt-operator"
MACHINE_TEMPLATE = "vitistack.io/machine-template"
CLUSTER_NAME = "cluster.vitistack.io/cluster-name"

# Which KubeVirt cluster a machine is on.
KUBEVIRT_CONFIG = "vitistack.io/kubevirt-config"
# Which one it was made in, as we wrote it down.
MADE_IN = "vitistack.io/made-in"
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


def claim_name(machine: str, disk: str) -> str:
    """Return the name of a disk's claim.

    It is not unique: disk ``c`` of ``a-b`` has the same as ``b-c`` of ``a``. Whoever finds a claim
    looks at whose it is.
    """
    return f"{machine}-{disk}"


def iso_claim_name(machine: str) -> str:
    """Return the name of the claim that holds a machine's install medium; no disk is called so."""
    return claim_name(machine, "iso")


def seed_secret_name(machine: str) -> str:
    """Return the name of the Secret with what cloud-init finds."""
    return f"{machine}-cloudinit"
