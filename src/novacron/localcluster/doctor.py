"""What a local cluster needs of the machine, checked one by one, each with its remedy."""

import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from novacron.localcluster.binaries import BIN_VARIABLE, cached, check, complete
from novacron.localcluster.golang import go_version, machine_go, wanted_version
from novacron.localcluster.node.ability import inability
from novacron.localcluster.packages import missing_for_build
from novacron.localcluster.ports import free_port
from novacron.workplace.errors import WorkplaceError
from novacron.workplace.home import Home
from novacron.workplace.packages import Package, install_command

__all__ = ["Finding", "examine", "missing_package"]

OLDEST_PYTHON = (3, 11)
BUILD_BYTES = 6 * 2**30
RUN_BYTES = 1 * 2**30
MEMORY_BYTES = 2 * 2**30


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; the remedy is empty when nothing is wrong."""

    name: str
    state: str
    remedy: str = ""

    @property
    def fine(self) -> bool:
        """Say whether nothing has to be done."""
        return not self.remedy


def examine(home: Home) -> Iterator[Finding]:
    """Look at everything that ``novacron up`` will need."""
    yield _system()
    yield _python()
    yield _memory()
    for place in (home.state, home.cache):
        yield _writable(place)
    ready_made = os.environ.get(BIN_VARIABLE)
    if ready_made:
        yield _ready_made(Path(ready_made))
    elif complete(cached(home.cache)):
        yield Finding("Kubernetes", f"built, in {cached(home.cache)}")
    else:
        yield from _build_needs()
    yield _disk(home, building=not ready_made and not complete(cached(home.cache)))
    yield _ports()
    yield _pods()


def _system() -> Finding:
    if sys.platform == "linux" and hasattr(os, "pidfd_open"):
        try:
            os.close(os.pidfd_open(os.getpid()))
        except OSError:
            return Finding("system", os.uname().release, "use Linux 5.3 or later")
        return Finding("system", f"Linux {os.uname().release}")
    return Finding("system", sys.platform, "use Linux: the local cluster runs nowhere else")


def _python() -> Finding:
    state = ".".join(map(str, sys.version_info[:3]))
    wanted = ".".join(map(str, OLDEST_PYTHON))
    new_enough = sys.version_info[:2] >= OLDEST_PYTHON
    return Finding("Python", state, "" if new_enough else f"install Python {wanted} or later")


def _memory() -> Finding:
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    remedy = "" if size >= MEMORY_BYTES else "use a machine with 2 GiB of memory or more"
    return Finding("memory", f"{size / 2**30:.1f} GiB", remedy)


def _writable(place: Path) -> Finding:
    name = f"directory {place}"
    existing = _existing(place)
    if not existing.is_dir():
        return Finding(name, f"{existing} is a file", "point NOVACRON_HOME elsewhere")
    if os.access(existing, os.W_OK | os.X_OK):
        return Finding(name, "writable")
    remedy = f"point NOVACRON_HOME at a place of your own, or `sudo chown $(id -u) {existing}`"
    return Finding(name, f"{existing} is not writable", remedy)


def _existing(place: Path) -> Path:
    return next(path for path in (place, *place.parents) if path.exists())


def _ready_made(directory: Path) -> Finding:
    try:
        check(directory)
    except WorkplaceError as error:
        return Finding("Kubernetes", str(error), f"correct or unset {BIN_VARIABLE}")
    return Finding("Kubernetes", f"ready-made, in {directory}")


def _build_needs() -> Iterator[Finding]:
    yield Finding("Kubernetes", "not built yet; `novacron up` builds it once")
    go = machine_go()
    wanted = ".".join(map(str, wanted_version()))
    if go:
        yield Finding("Go", f"{'.'.join(map(str, go_version(go) or ()))}, {go}")
    else:
        yield Finding("Go", f"none from version {wanted} on; `novacron up` takes it from PyPI")
    yield from (missing_package(package) for package in missing_for_build())


def missing_package(package: Package) -> Finding:
    """Tell of a package that is missing, and how to get it."""
    command = install_command([package]) or ("install", package.name)
    return Finding(package.name, f"missing: {package.purpose}", f"run `sudo {' '.join(command)}`")


def _disk(home: Home, *, building: bool) -> Finding:
    place = _existing(home.cache)
    free, needed = shutil.disk_usage(place).free, BUILD_BYTES if building else RUN_BYTES
    remedy = "" if free >= needed else f"free {(needed - free) / 2**30:.1f} GiB more in {place}"
    return Finding("disk", f"{free / 2**30:.1f} GiB free", remedy)


def _ports() -> Finding:
    try:
        free_port()
    except WorkplaceError as error:
        return Finding("loopback ports", str(error), "stop what listens on all of them")
    return Finding("loopback ports", "free")


def _pods() -> Finding:
    # Nothing else needs it, so it is no fault.
    return Finding("pods", inability() or "those of our own image can run here")
