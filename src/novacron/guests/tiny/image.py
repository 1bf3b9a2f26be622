"""The image in the cache: made once from packages, whole or not there at all."""

import hashlib
import shutil
import tempfile
from pathlib import Path

from novacron.guests.tiny.debs import Debs, unpack
from novacron.guests.tiny.disk import Disk
from novacron.guests.tiny.initramfs import initramfs
from novacron.guests.tiny.tree import System
from novacron.workplace.files import private_directory
from novacron.workplace.lock import holding
from novacron.workplace.progress import Progress

__all__ = ["cached", "tiny_image"]

HERE = Path(__file__).parent
SCRATCH = ".guest-"
PACKAGES = (
    *("linux-image-cloud-amd64", "busybox-static", "bash", "qemu-guest-agent"),
    # Growing the root, and reading YAML.
    *("e2fsprogs", "util-linux", "libfyaml-utils"),
    # Making the boot partition.
    *("mtools", "syslinux", "syslinux-common"),
)


def cached(cache: Path) -> Path:
    """Return where the cache keeps the image that this package makes."""
    digest = hashlib.sha256()
    for path in sorted(HERE.rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            digest.update(f"{path.relative_to(HERE)}\0{path.stat().st_size}\0".encode())
            digest.update(path.read_bytes())
    return cache / f"guest-tiny-{digest.hexdigest()[:12]}.qcow2"


def tiny_image(cache: Path, progress: Progress, debs: Path | None = None) -> Path:
    """Return the image, making it if it is not in the cache.

    Packages that lie in ``debs`` are not fetched; those that are fetched are put there.
    """
    image = cached(cache)
    if not image.exists():

        def tell() -> None:
            progress.say("another one is making the image; waiting for it")

        with holding(cache / "guest-tiny.lock", "build", on_wait=tell):
            if not image.exists():
                _make(image, progress, debs)
    return image


def _make(image: Path, progress: Progress, debs: Path | None) -> None:
    cache = private_directory(image.parent)
    for left in cache.glob(f"{SCRATCH}*"):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix=SCRATCH) as directory:
        scratch = Path(directory)
        packages = Debs(debs or scratch / "debs", scratch / "apt", progress).closure(PACKAGES)
        progress.say(f"unpacking {len(packages)} packages")
        unpack(packages, scratch / "system")
        progress.say("making the disk of the guest")
        _disk(System(scratch / "system"), scratch).replace(image)


def _disk(system: System, scratch: Path) -> Path:
    root, early = scratch / "root", scratch / "initramfs"
    system.root(root)
    system.initramfs(early)
    kernel = system.find(f"boot/vmlinuz-{system.modules.name}")
    parts = {"vmlinuz": kernel.read_bytes(), "initrd": initramfs(early)}
    image = scratch / "tiny.qcow2"
    Disk(system, scratch).write(root, parts, image)
    return image
