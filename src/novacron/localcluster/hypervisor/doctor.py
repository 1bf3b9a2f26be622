"""What real guests need of the machine, checked one by one, each with its remedy."""

import os
from collections.abc import Iterator

from novacron.localcluster.doctor import Finding, missing_package
from novacron.localcluster.hypervisor import binding
from novacron.localcluster.hypervisor.kvm import why_emulated
from novacron.localcluster.hypervisor.packages import missing_for_hypervisor
from novacron.localcluster.hypervisor.rights import missing_right

__all__ = ["examine_hypervisor"]


def examine_hypervisor() -> Iterator[Finding]:
    """Look at everything that real guests will need."""
    missing = missing_for_hypervisor()
    yield from (missing_package(package) for package in missing)
    if not missing:
        yield Finding("QEMU and libvirt", "installed")
    compiled = "compiled" if binding.present() else "not compiled yet; `novacron up` does it once"
    yield Finding("binding of libvirt", compiled)
    yield _rights()
    yield _virtualization()


def _rights() -> Finding:
    if os.geteuid():
        return Finding("guests' network", "user mode: guests reach out and are not reached")
    right = missing_right()
    if right:
        return Finding(
            "guests' network",
            f"this root has no {right}",
            f"give the container {right}, or run as an ordinary user",
        )
    return Finding("guests' network", "a bridge of their own, with DHCP")


def _virtualization() -> Finding:
    """Tell how guests run; emulation is slow, and nothing that has to be mended."""
    why = why_emulated()
    return Finding("virtualization", f"emulated, many times slower: {why}" if why else "KVM")
