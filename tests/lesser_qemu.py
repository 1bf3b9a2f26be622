"""A QEMU that gives its guests less than it is asked for, in place of a host's own."""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["lesser_qemu"]

QEMU = "/usr/bin/qemu-system-x86_64"
# Every guest has one feature less than it is asked for.
LESSER = """#!/bin/bash
args=() before=
for each in "$@"; do
    [ "$before" = -cpu ] && args+=("$each,-cx16") || args+=("$each")
    before=$each
done
export QEMU_MODULE_DIR=/usr/lib/x86_64-linux-gnu/qemu
# It looks for its files beside itself.
for each in /usr/share/qemu /usr/share/seabios /usr/lib/ipxe/qemu; do args+=(-L "$each"); done
exec {real} "${{args[@]}}"
"""


@contextmanager
def lesser_qemu(daemon: int) -> Iterator[None]:
    """Have the QEMU of a libvirt daemon, by its process, give less than anybody was told."""
    with tempfile.TemporaryDirectory(prefix="nova-lesser-") as directory:
        Path(directory).chmod(0o755)  # QEMU runs as a user of its own
        real, wrapper = Path(directory) / "qemu", Path(directory) / "lesser"
        real.touch()
        wrapper.write_text(LESSER.format(real=real))
        wrapper.chmod(0o755)
        inside = ["nsenter", f"--mount=/proc/{daemon}/ns/mnt", "--"]
        for here, place in ((QEMU, real), (wrapper, QEMU)):
            subprocess.run([*inside, "mount", "--bind", str(here), str(place)], check=True)
        try:
            yield
        finally:
            for place in (QEMU, real):
                subprocess.run([*inside, "umount", "-l", str(place)], check=True)
