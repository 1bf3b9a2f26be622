"""What things are called in a KubeVirt cluster: kinds, labels, and the objects of a machine."""

from novacron.core.machine import MachineRef
from novacron.runtime.resource import SECRETS, Resource

__all__ = [
    "APPLIED",
    "ASKED",
    "CLAIMS",
    "CLOUD_INIT",
    "DISK",
    "GROWN",
    "IMPORTS",
    "INSTANCES",
    "ISO",
    "KUBEVIRTS",
    "MACHINES",
    "MEDIUM",
    "MIGRATIONS",
    "MOVE",
    "NETWORKS",
    "NODES",
    "PODS",
    "RECIPE",
    "RECLAIM",
    "REQUEST",
    "RESTORES",
    "SECRETS",
    "SNAPSHOT",
    "SNAPSHOTS",
    "STORAGE_CLASSES",
    "SUBRESOURCES",
    "UID",
    "VOLUME",
    "claim_name",
    "secret_name",
]

MACHINES = Resource("kubevirt.io", "v1", "virtualmachines", "VirtualMachine")
INSTANCES = Resource("kubevirt.io", "v1", "virtualmachineinstances", "VirtualMachineInstance")
MIGRATIONS = Resource(
    "kubevirt.io",
    "v1",
    "virtualmachineinstancemigrations",
    "VirtualMachineInstanceMigration",
)
SNAPSHOTS = Resource(
    "snapshot.kubevirt.io", "v1beta1", "virtualmachinesnapshots", "VirtualMachineSnapshot"
)
RESTORES = Resource(
    "snapshot.kubevirt.io", "v1beta1", "virtualmachinerestores", "VirtualMachineRestore"
)
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
# CDI's, which may not be there.
IMPORTS = Resource("cdi.kubevirt.io", "v1beta1", "datavolumes", "DataVolume")
KUBEVIRTS = Resource("kubevirt.io", "v1", "kubevirts", "KubeVirt")
# Where a machine is stopped, asked for its console and the like.
SUBRESOURCES = Resource("subresources.kubevirt.io", "v1", "virtualmachines", "VirtualMachine")
NETWORKS = Resource(
    "k8s.cni.cncf.io", "v1", "network-attachment-definitions", "NetworkAttachmentDefinition"
)
# What KubeVirt itself is set to do.
KUBEVIRTS = Resource("kubevirt.io", "v1", "kubevirts", "KubeVirt")
CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
PODS = Resource("", "v1", "pods", "Pod")
STORAGE_CLASSES = Resource(
    "storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False
)

# On whatever is made for a machine: by this it is found again, whoever made it.
UID = "novacron.io/machine-uid"
# On claims: which disk of the machine they are.
DISK = "novacron.io/disk"
# On claims: what the volume is called by its owner, and whether it goes with its machine.
VOLUME = "novacron.io/volume-id"
RECLAIM = "novacron.io/reclaim"
# On the VirtualMachine: the plan's word for what it was set up with.
RECIPE = "novacron.io/recipe"
# On the VirtualMachine: what we last asked for, to see what somebody else changed.
APPLIED = "novacron.io/applied"
# On claims: how large we asked for them to be; others may have made them larger.
ASKED = "novacron.io/asked-size"
# On claims: the UID of the instance that ran when the volume was last made larger.
GROWN = "novacron.io/grown-under"
# On migrations: which order they are.
MOVE = "novacron.io/move"
# On snapshots: their name among those of their machine; on restores: which request they are.
SNAPSHOT = "novacron.io/snapshot"
REQUEST = "novacron.io/restore-request"
# On install media in place of the above: they are no disks of the machine's own.
MEDIUM = "novacron.io/medium"
# The name of the drive of an install medium.
ISO = "iso"
# The name of the disk that tells the guest about itself.
CLOUD_INIT = "cloudinitdisk"


def claim_name(ref: MachineRef, disk: str) -> str:
    """Return the name of the claim for a machine's disk."""
    return f"{ref.name}-{disk}"


def secret_name(ref: MachineRef) -> str:
    """Return the name of the Secret that holds what a guest is told about itself."""
    return f"{ref.name}-cloud-init"
