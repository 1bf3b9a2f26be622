"""A libvirt network that a daemon finds when it starts, before anybody can ask it for one."""

import os
import uuid
from pathlib import Path

from novacron.workplace.files import write_private

__all__ = ["network_xml", "write_network"]

SEEN = Path("/etc/libvirt/qemu/networks")


def network_xml(name: str, bridge: str) -> str:
    """Return a network that plugs guests into a bridge which is there."""
    identity = uuid.uuid5(uuid.NAMESPACE_DNS, name)
    where = f"<forward mode='bridge'/><bridge name='{bridge}'/>"
    return f"<network><name>{name}</name><uuid>{identity}</uuid>{where}</network>\n"


def write_network(settings: Path, name: str, bridge: str) -> None:
    """Write it below root's settings, instead of one from when the host was alone."""
    networks = settings / "qemu" / "networks"
    text = network_xml(name, bridge)
    file, link = networks / f"{name}.xml", networks / "autostart" / f"{name}.xml"
    if not file.exists() or f"<bridge name='{bridge}'/>" not in file.read_text():
        write_private(file, text)
    link.parent.mkdir(exist_ok=True)
    if not os.path.lexists(link):
        link.symlink_to(SEEN / file.name)
