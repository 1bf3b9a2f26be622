"""A look inside a guest through its agent, as somebody with virsh has it."""

import base64
import json
import time
from typing import Any

import libvirt
import libvirt_qemu

__all__ = ["BOOT_ID", "agent_answers", "file_systems", "from_disk", "inside"]

SECONDS = 60
# The kernel makes it anew with each boot, so nobody who was started again has the same one.
BOOT_ID = "cat /proc/sys/kernel/random/boot_id"


def inside(domain: libvirt.virDomain, line: str) -> str:
    """Run a line of shell in a guest and return what it printed."""
    arguments = {"path": "/bin/sh", "arg": ["-c", line], "capture-output": True}
    pid = _ask(domain, "guest-exec", **arguments)["pid"]
    deadline = time.monotonic() + SECONDS
    while not (done := _ask(domain, "guest-exec-status", pid=pid))["exited"]:
        assert time.monotonic() < deadline, f"{line} does not end"
        time.sleep(0.1)
    return base64.b64decode(done.get("out-data") or "").decode().strip()


def from_disk(path: str) -> str:
    """Return a line of shell that reads what is on a disk, past what the guest has in memory.

    Dropping all its caches is no way: of Debian's kernel 6.1.192 no ext4 can be written to then.
    """
    return f"dd if={path} iflag=direct bs=1M 2>/dev/null"


def agent_answers(domain: libvirt.virDomain) -> bool:
    """Say whether a guest's agent is there."""
    try:
        _ask(domain, "guest-ping")
    except libvirt.libvirtError:
        return False
    return True


def file_systems(domain: libvirt.virDomain) -> str:
    """Say whether a guest's file systems are frozen or thawed."""
    state: str = _ask(domain, "guest-fsfreeze-status")
    return state


def _ask(domain: libvirt.virDomain, command: str, **arguments: Any) -> Any:
    question = json.dumps({"execute": command, "arguments": arguments})
    return json.loads(libvirt_qemu.qemuAgentCommand(domain, question, 10, 0))["return"]
