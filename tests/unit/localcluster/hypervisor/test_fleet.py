"""Several hosts on one machine exchange real guests, fail alone and leave nothing behind."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import libvirt

from fleet import Console, shared_fleet
from guest_images import built_in
from novacron.localcluster.hypervisor import Fleet, Hypervisor
from novacron.localcluster.hypervisor.places import SEEN_SHARED
from ping import answers
from rights import ROOT

MOVE = (
    libvirt.VIR_MIGRATE_LIVE
    | libvirt.VIR_MIGRATE_PERSIST_DEST
    | libvirt.VIR_MIGRATE_UNDEFINE_SOURCE
    # libvirt 9 knows a shared directory by its file system, and cannot be told of another.
    | libvirt.VIR_MIGRATE_UNSAFE
)
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


def guest_on(fleet: Fleet, connection: libvirt.virConnect) -> libvirt.virDomain:
    """Start a tiny guest whose disk is where every host sees it."""
    image = built_in("tiny")
    assert image is not None
    disk = fleet.directory / "shared/counter.qcow2"
    shutil.copy(image, disk)
    disk.chmod(0o666)
    seen = SEEN_SHARED / disk.name if ROOT else disk
    network = fleet.hosts[0].network
    kind, source = ("network", f"<source network='{network}'/>") if ROOT else ("user", "")
    domain = connection.defineXML(GUEST.format(disk=seen, kind=kind, source=source))
    domain.create()
    return domain


def test_a_guest_moves_while_it_counts() -> None:
    """It goes on counting: it was not started anew, and its network came along."""
    fleet = shared_fleet()
    with connected(*fleet.hosts) as (here, there):
        domain = guest_on(fleet, here)
        console = Console(domain)
        address = console.until(r"ready hostname=\S+ ip=(\S+)")[1]
        before = console.tick()
        console.close()
        moved = domain.migrate3(there, {}, MOVE)
        try:
            console = Console(moved)
            assert before < console.tick(20) < before + 60
            assert here.listAllDomains() == []
            if ROOT:
                assert answers(address, 5)
            moved = moved.migrate3(here, {}, MOVE | libvirt.VIR_MIGRATE_TLS)
            assert Console(moved).tick(20) > before
        finally:
            moved.destroy()
            moved.undefine()
