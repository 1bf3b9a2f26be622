"""What KubeVirt, and our stand-in for its nodes, call things."""

from novacron.runtime.resource import Resource

__all__ = [
    "API",
    "CONTROLLER",
    "HANDLER_USER",
    "INSTANCES",
    "KUBEVIRTS",
    "LAUNCHER_IMAGE",
    "MIGRATIONS",
    "NAMESPACE",
    "NODE",
    "NODES",
    "PROGRAMS",
    "PROVISIONER",
]

NAMESPACE = "kubevirt"
API = "virt-api"
CONTROLLER = "virt-controller"
NODES = "kubevirt-nodes"
# What its nodes are called.
NODE = "kubevirt-{}"
PROGRAMS = (API, CONTROLLER, NODES)
# KubeVirt believes what is said of a running guest only of this user.
HANDLER_USER = f"system:serviceaccount:{NAMESPACE}:kubevirt-handler"
# Never fetched: nothing runs it.
LAUNCHER_IMAGE = "stand-in.novacron.io/virt-launcher:v1.6.0"
PROVISIONER = "stand-in.novacron.io"

KUBEVIRTS = Resource("kubevirt.io", "v1", "kubevirts", "KubeVirt")
INSTANCES = Resource("kubevirt.io", "v1", "virtualmachineinstances", "VirtualMachineInstance")
MIGRATIONS = Resource(
    "kubevirt.io", "v1", "virtualmachineinstancemigrations", "VirtualMachineInstanceMigration"
)
