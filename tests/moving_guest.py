"""A tiny guest that counts on its console, and moves between the hosts of a fleet meanwhile.

Run as a program it does so on a fleet of its own; it needs no more rights than its user has.
"""

import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path

import libvirt

from fleet import Console
from novacron.localcluster.hypervisor import Fleet, Hypervisor
from novacron.localcluster.hypervisor.places import SEEN_SHARED
from ping import answers

__all__ = ["MOVE", "connected", "guest_on", "moves_while_it_counts"]

MOVE = (
    libvirt.VIR_MIGRATE_LIVE
    | libvirt.VIR_MIGRATE_PERSIST_DEST
    | libvirt.VIR_MIGRATE_UNDEFINE_SOURCE
    # libvirt 9 knows a shared directory by its file system, and cannot be told of another.
    | libvirt.VIR_MIGRATE_UNSAFE
)
DISK = "shared/counter.qcow2"
GUEST = """
<domain type='qemu'><name>counter</name><memory unit='MiB'>192</memory>
<os><type arch='x86_64' machine='q35'>hvm</type></os><features><acpi/></features>
<cpu mode='custom'><model>qemu64</model></cpu>
<devices>
  <disk type='file' device='disk'><driver name='qemu' type='qcow2' cache='none'/>
    <source file='{disk}'/><target dev='vda' bus='virtio'/></disk>
  <interface type='{kind}'>{source}<model type='virtio'/></interface>
  <serial type='pty'/>
  <channel type='unix'><target type='virtio' name='org.qemu.guest_agent.0'/></channel>
  <memballoon model='none'/>
</devices></domain>
"""


@contextmanager
def connected(*hosts: Hypervisor) -> Iterator[list[libvirt.virConnect]]:
    with ExitStack() as stack:
        opened = [libvirt.open(host.uri) for host in hosts]
        for connection in opened:
            stack.callback(connection.close)
        yield opened


def guest_on(fleet: Fleet, connection: libvirt.virConnect, image: Path) -> libvirt.virDomain:
    """Start a tiny guest whose disk is where every host sees it."""
    disk = fleet.directory / DISK
    shutil.copy(image, disk)
    disk.chmod(0o666)
    seen = SEEN_SHARED / disk.name if fleet.privileged else disk
    network = fleet.hosts[0].network
    kind, source = (
        ("network", f"<source network='{network}'/>") if fleet.privileged else ("user", "")
    )
    domain = connection.defineXML(GUEST.format(disk=seen, kind=kind, source=source))
    domain.create()
    return domain


def moves_while_it_counts(fleet: Fleet, image: Path) -> None:
    """Move a guest there and back, the second time encrypted and by the daemons themselves."""
    with connected(*fleet.hosts) as (here, there):
        domain = guest_on(fleet, here, image)
        console = Console(domain)
        address = console.until(r"ready hostname=\S+ ip=(\S+)")[1]
        before = console.tick()
        console.close()
        moved = domain.migrate3(there, {}, MOVE)
        try:
            after = Console(moved).tick(20)
            assert before < after < before + 60
            assert here.listAllDomains() == []
            assert not fleet.privileged or answers(address, 5)
            flags = MOVE | libvirt.VIR_MIGRATE_TLS | libvirt.VIR_MIGRATE_PEER2PEER
            moved.migrateToURI3(fleet.hosts[0].peer_uri, {}, flags)
            moved = here.lookupByName(moved.name())
            assert Console(moved).tick(20) > after
            assert there.listAllDomains() == []
        finally:
            moved.destroy()
            moved.undefine()
            (fleet.directory / DISK).unlink()


if __name__ == "__main__":
    own = Fleet(Path(sys.argv[1]), 2)
    try:
        own.start()
        moves_while_it_counts(own, Path(sys.argv[2]))
    finally:
        own.stop(timedelta(0))
