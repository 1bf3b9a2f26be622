"""libvirt: machines that are QEMU guests on a host reached by libvirt's own protocol.

Loaded only when a host asks for it: the binding is compiled against the machine's libvirt.
"""

import os

# Failures are raised; what libvirt's library prints beside that, nobody could place. It reads this
# when it is loaded, and what we start has its own.
_ours = os.environ.setdefault("LIBVIRT_LOG_OUTPUTS", "4:file:/dev/null") == "4:file:/dev/null"

from novacron.drivers.libvirt.driver import LibvirtDriver  # noqa: E402
from novacron.drivers.libvirt.host import Bridged, ClassPool, LibvirtHost  # noqa: E402
from novacron.drivers.libvirt.stock import Workshop  # noqa: E402

if _ours:
    del os.environ["LIBVIRT_LOG_OUTPUTS"]

__all__ = ["Bridged", "ClassPool", "LibvirtDriver", "LibvirtHost", "Workshop"]
