"""The part of the kernel's modules that a guest needs."""

import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from novacron.guests.errors import ImageFailed
from novacron.guests.tiny.programs import run

__all__ = ["FOR_DISKS", "FOR_GUEST", "install_modules", "kernel_version"]

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


def kernel_version(system: Path) -> str:
    """Return the version of the one kernel in an unpacked system."""
    (directory,) = (system / "lib/modules").iterdir()
    return directory.name


def install_modules(system: Path, names: Iterable[str], busybox: Path, tree: Path) -> None:
    """Copy modules and all that they depend on from an unpacked system into a tree."""
    version = kernel_version(system)
    source, target = (place / "lib/modules" / version for place in (system, tree))
    target.mkdir(parents=True)
    for path in _closure(source, names):
        shutil.copyfile(path, target / path.name)
    run([busybox, "depmod", "-b", tree, version])


def _closure(modules: Path, names: Iterable[str]) -> Sequence[Path]:
    there = {_plain(path.name): path for path in modules.rglob("*.ko")}
    built_in = {
        _plain(Path(line).name) for line in (modules / "modules.builtin").read_text().splitlines()
    }
    found: dict[str, Path] = {}
    wanted = list(names)
    while wanted:
        name = _plain(wanted.pop())
        if name in built_in or name in found:
            continue
        if name not in there:
            raise ImageFailed(f"the kernel package has no module {name}; use another release's")
        found[name] = there[name]
        depends = DEPENDS.search(found[name].read_bytes())
        wanted += depends[1].decode().split(",") if depends and depends[1] else []
    return sorted(found.values())


def _plain(name: str) -> str:
    return name.removesuffix(".ko").replace("-", "_")
