"""A guest of one sector that counts aloud, and what its QEMU writes on its volumes for it."""

import json
import subprocess
from pathlib import Path

import libvirt
import libvirt_qemu

__all__ = ["COUNTS", "counts", "is_written", "write_on_volumes"]

MIB = 1024 * 1024
DIGITS = 4
# A boot sector that says "!" once, and then counts what wakes it: the clock, 18 times a second.
# Every 16th time it says how far it is, with a letter for each four bits.
COUNTER = (
    bytes([0xBA, 0xF8, 0x03])  # mov dx, 0x3f8: the serial port
    + bytes([0x31, 0xDB])  # xor bx, bx
    + bytes([0xB0, ord("!"), 0xEE, 0xB0, ord("\n"), 0xEE])  # say "!\n"
    + bytes([0xFB, 0xF4, 0x43])  # sleep: sti; hlt; inc bx
    + bytes([0xF6, 0xC3, 0x0F, 0x75, 0xF8])  # test bl, 15; jnz sleep
    + bytes([0xB9, 0x04, 0x00])  # mov cx, 4
    + bytes([0xC1, 0xC3, 0x04, 0x88, 0xD8])  # digit: rol bx, 4; mov al, bl
    + bytes([0x24, 0x0F, 0x04, ord("A"), 0xEE])  # and al, 15; add al, "A"; out dx, al
    + bytes([0xE2, 0xF4])  # loop digit
    + bytes([0xB0, ord("\n"), 0xEE, 0xEB, 0xE4])  # say "\n"; jmp sleep
)
COUNTS = (COUNTER.ljust(510, b"\0") + b"\x55\xaa").ljust(MIB, b"\0")
WRITTEN = "-P 90 0 64k"


def counts(said: str) -> list[int]:
    """Return how far a guest said that it is, in whole lines."""
    return [
        int("".join(f"{ord(letter) - ord('A'):x}" for letter in line), 16)
        for line in said[: said.rfind("\n") + 1].split()
        if len(line) == DIGITS
    ]


def write_on_volumes(domain: libvirt.virDomain) -> None:
    """Have something on each volume of a guest, by the way on which the guest would write it."""
    asked = json.dumps({"execute": "query-block"})
    for each in json.loads(libvirt_qemu.qemuMonitorCommand(domain, asked, 0))["return"]:
        if "/volume-" in each["inserted"]["file"]:
            for command in (f"write {WRITTEN}", "flush"):
                line = f'qemu-io -d {each["qdev"]} "{command}"'
                libvirt_qemu.qemuMonitorCommand(
                    domain, line, libvirt_qemu.VIR_DOMAIN_QEMU_MONITOR_COMMAND_HMP
                )


def is_written(volume: Path) -> bool:
    """Say whether that is on a volume, which a guest may have at this moment."""
    read = ["qemu-io", "-U", "-r", "-f", "qcow2", "-c", f"read {WRITTEN}", str(volume)]
    return subprocess.run(read, check=False, capture_output=True).returncode == 0
