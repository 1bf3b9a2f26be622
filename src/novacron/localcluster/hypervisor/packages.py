"""The system packages that a hypervisor of our own needs.

None of them starts a service: Debian keeps what makes libvirt one of the machine's own in
libvirt-daemon-system, which is not among them.
"""

import os
import sysconfig
from pathlib import Path

from novacron.localcluster.hypervisor import binding
from novacron.workplace.packages import Package, lacking
from novacron.workplace.programs import find_program

__all__ = ["missing_for_hypervisor"]

QEMU_DRIVER = "libvirt/connection-driver/libvirt_driver_qemu.so"
LIBRARIES = ("lib/*", "lib", "lib64")
LIBVIRT_HEADER = Path("/usr/include/libvirt/libvirt.h")
C_HEADER = Path("/usr/include/stdio.h")
BINDING = "the Python binding of libvirt is compiled with it"

_program = Package.with_program


def _have_driver() -> bool:
    return any(any(Path("/usr").glob(f"{each}/{QEMU_DRIVER}")) for each in LIBRARIES)


def _have_python_headers() -> bool:
    return Path(sysconfig.get_path("include"), "Python.h").exists()


FOR_DAEMON = (
    _program("libvirtd", "libvirt-daemon", "it looks after guests"),
    Package("libvirt-daemon-driver-qemu", "it starts guests in QEMU", _have_driver),
    _program("virsh", "libvirt-clients", "guests are asked to stop with it"),
    _program("qemu-system-x86_64", "qemu-system-x86", "guests run in it"),
    _program("qemu-img", "qemu-utils", "disks of guests are made with it"),
)
FOR_BRIDGE = (
    _program("dnsmasq", "dnsmasq-base", "it gives guests their addresses"),
    _program("iptables", "iptables", "it lets guests reach out"),
    _program("ip", "iproute2", "it removes bridges that a crash left"),
)
FOR_BINDING = (
    Package("gcc", BINDING, lambda: bool(find_program("cc") or find_program("gcc"))),
    Package("libc6-dev", BINDING, C_HEADER.exists),
    Package("libvirt-dev", BINDING, LIBVIRT_HEADER.exists),
    _program("pkg-config", "pkg-config", BINDING),
    Package("python3-dev", BINDING, _have_python_headers),
)


def missing_for_hypervisor() -> list[Package]:
    """Return the packages without which no guest can be run here as this user."""
    bridge = FOR_BRIDGE if os.geteuid() == 0 else ()
    compiling = () if binding.present() else FOR_BINDING
    return lacking((*FOR_DAEMON, *bridge, *compiling))
