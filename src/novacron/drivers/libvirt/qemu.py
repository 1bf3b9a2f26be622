"""Questions to the QEMU of a running guest, for what libvirt has no call. Blocks."""

import json
from collections.abc import Mapping

import libvirt

from novacron.core.errors import Busy

__all__ = ["ask_qemu", "nodes_of"]


def ask_qemu(handle: libvirt.virDomain, command: str, **arguments: object) -> object:
    """Return what QEMU answers; a refusal is Busy."""
    # Loaded when it is needed, as everything of libvirt is.
    import libvirt_qemu  # noqa: PLC0415

    question = json.dumps({"execute": command, "arguments": arguments})
    answer = json.loads(libvirt_qemu.qemuMonitorCommand(handle, question, 0))
    if "error" in answer:
        raise Busy(f"QEMU refuses it: {answer['error'].get('desc', 'no reason given')}")
    return answer["return"]


def nodes_of(handle: libvirt.virDomain, aliases: Mapping[str, str]) -> list[str]:
    """Return what QEMU calls disks, which are given by target and libvirt's alias."""
    devices = ask_qemu(handle, "query-block")
    assert isinstance(devices, list)
    nodes = {
        target: device["inserted"]["node-name"]
        for target, alias in aliases.items()
        for device in devices
        if f"/{alias}/" in f"{device.get('qdev')}/" and device.get("inserted")
    }
    missing = [target for target in aliases if target not in nodes]
    if missing:
        raise Busy(f"QEMU does not know disk {', '.join(missing)} at the moment")
    return list(nodes.values())
