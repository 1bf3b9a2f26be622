"""A hypervisor of our own on this machine: a private libvirt daemon, and the guests in it.

It has its own directories, sockets, networks and name, so whatever libvirt the user already runs
is neither used nor seen. It knows how to start, stop and clean up; what the guests are for it does
not know.
"""

from novacron.localcluster.hypervisor.arrangement import Arrangement
from novacron.localcluster.hypervisor.daemon import Hypervisor
from novacron.localcluster.hypervisor.fleet import SHARED_POOL, Fleet

__all__ = ["SHARED_POOL", "Arrangement", "Fleet", "Hypervisor"]
