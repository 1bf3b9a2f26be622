"""libvirt: machines that are QEMU guests on a host reached by libvirt's own protocol.

Loaded only when a host asks for it: the binding is compiled against the machine's libvirt.
"""

from novacron.drivers.libvirt.driver import LibvirtDriver
from novacron.drivers.libvirt.host import LibvirtHost

__all__ = ["LibvirtDriver", "LibvirtHost"]
