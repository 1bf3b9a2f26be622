"""Machines as VirtualMachines of a KubeVirt cluster.

The only driver whose hypervisor is Kubernetes: its SDK is our own runtime.
"""

from novacron.drivers.kubevirt.cluster import Cluster
from novacron.drivers.kubevirt.driver import KubeVirtDriver

__all__ = ["Cluster", "KubeVirtDriver"]
