"""The settings of a private libvirt daemon, as text."""

import uuid
from pathlib import Path

from novacron.localcluster.hypervisor.account import GUEST_USER
from novacron.localcluster.hypervisor.kvm import guest_group
from novacron.localcluster.hypervisor.membership import SEEN_CERTIFICATES, Membership
from novacron.workplace.files import write_private

__all__ = ["write_configuration"]

DAEMON = """\
# Written by novacron.
host_uuid = "{uuid}"
auth_unix_rw = "none"
unix_sock_rw_perms = "0700"
unix_sock_ro_perms = "0700"
log_outputs = "3:stderr"
"""
# Control groups would outlive the daemon; a /dev for each guest cannot be made where KVM is hidden.
GUESTS = """\
# Written by novacron.
security_driver = "none"
remember_owner = 0
stdio_handler = "file"
cgroup_controllers = []
namespaces = []
"""
WHO = """\
user = "+{user}"
group = "+{group}"
"""


def write_configuration(
    directory: Path, *, privileged: bool, membership: Membership | None = None
) -> str:
    """Write both files if they differ; return what changes with them."""
    daemon = DAEMON.format(uuid=_identity(directory / "uuid"))
    who = WHO.format(user=GUEST_USER, group=guest_group() or GUEST_USER)
    guests = GUESTS + (who if privileged else "")
    if membership:
        own = directory / SEEN_CERTIFICATES.name
        membership.write_certificates(own, privileged=privileged)
        seen = SEEN_CERTIFICATES if privileged else own
        daemon += membership.daemon_settings(seen) if privileged else ""
        guests += membership.guest_settings(seen)
    for name, text in {"libvirtd.conf": daemon, "qemu.conf": guests}.items():
        path = directory / name
        if not path.exists() or path.read_text() != text:
            write_private(path, text)
    return daemon + guests


def _identity(path: Path) -> str:
    """Return what tells this host from others: two of one machine would share the machine's."""
    if not path.exists():
        write_private(path, str(uuid.uuid4()))
    return path.read_text()
