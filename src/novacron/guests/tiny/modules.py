"""The part of the kernel's modules that a guest needs."""

import lzma
import re
from collections.abc import Iterable
from pathlib import Path

from novacron.guests.errors import ImageFailed
from novacron.guests.tiny.programs import run

__all__ = ["FOR_DISKS", "FOR_GUEST", "install_modules"]

# Whatever a root file system may lie on.
FOR_DISKS = ("virtio_pci", "virtio_blk", "virtio_scsi", "sd_mod")
FOR_GUEST = (
    *FOR_DISKS,
    # Devices of a virtual machine.
    *("virtio_net", "virtio_console", "virtio_balloon", "virtio_rng", "virtio_mem"),
    # The power button, and telling the hypervisor of a panic.
    *("button", "evdev", "pvpanic_pci", "pvpanic_mmio"),
    # Where NoCloud data may lie.
    *("sr_mod", "ata_piix", "isofs", "vfat", "nls_cp437", "nls_ascii", "nls_utf8"),
    # Directories of the host.
    "virtiofs",
)
DEPENDS = re.compile(rb"\0depends=([^\0]*)\0")


def install_modules(modules: Path, names: Iterable[str], busybox: Path, tree: Path) -> None:
    """Copy modules of a kernel, and all that they depend on, into a tree."""
    target = tree / "lib/modules" / modules.name
    target.mkdir(parents=True)
    for name, content in _closure(modules, names).items():
        (target / f"{name}.ko").write_bytes(content)
    run([busybox, "depmod", "-b", tree, modules.name])


def _closure(modules: Path, names: Iterable[str]) -> dict[str, bytes]:
    there = {_plain(path.name): path for path in modules.rglob("*.ko*")}
    built_in = {
        _plain(Path(line).name) for line in (modules / "modules.builtin").read_text().splitlines()
    }
    found: dict[str, bytes] = {}
    wanted = list(names)
    while wanted:
        name = _plain(wanted.pop())
        if name in built_in or name in found:
            continue
        if name not in there:
            raise ImageFailed(
                f"the kernel has no module {name}; take the packages of Debian 12 or 13"
            )
        found[name] = _content(there[name])
        depends = DEPENDS.search(found[name])
        wanted += depends[1].decode().split(",") if depends and depends[1] else []
    return found


def _content(path: Path) -> bytes:
    content = path.read_bytes()
    return lzma.decompress(content) if path.suffix == ".xz" else content


def _plain(name: str) -> str:
    return name.removesuffix(".xz").removesuffix(".ko").replace("-", "_")
