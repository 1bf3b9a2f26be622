"""What KubeVirt, and our stand-in for its nodes, call things."""

from novacron.runtime.resource import Resource

__all__ = [
    "API",
    "CONTROLLER",
    "HANDLER",
    "HANDLER_NAME",
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
# In the order in which they are started: virt-api is told where the nodes answer.
PROGRAMS = (NODES, API, CONTROLLER)
# KubeVirt believes what is said of a running guest only of this user.
HANDLER_USER = f"system:serviceaccount:{NAMESPACE}:kubevirt-handler"
HANDLER = "virt-handler"
# As whom virt-handler is known to virt-api.
HANDLER_NAME = "kubevirt.io:system:node:virt-handler"
# Never fetched: nothing runs it.
LAUNCHER_IMAGE = "stand-in.novacron.io/virt-launcher:v1.6.0"
PROVISIONER = "stand-in.novacron.io"

KUBEVIRTS = Resource("kubevirt.io", "v1", "kubevirts", "KubeVirt")
INSTANCES = Resource("kubevirt.io", "v1", "virtualmachineinstances", "VirtualMachineInstance")
MIGRATIONS = Resource(
    "kubevirt.io", "v1", "virtualmachineinstancemigrations", "VirtualMachineInstanceMigration"
)
