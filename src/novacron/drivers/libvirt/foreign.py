"""How much of a pool's room others took than machines and kept volumes. Blocks.

That is all that is in use of its file system, but for what disks take of what is reserved for
them: images, snapshots beyond the size of their disks, seeds and logs, and what is no business of
ours. Each disk is asked for, so it is measured anew only when the use has changed, or after a
while; and told in steps, rounded up, so that a host's status does not change all the time.
"""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import libvirt

from novacron.drivers.libvirt.fitted import PREFIX
from novacron.drivers.libvirt.pool import Pool

__all__ = ["Foreign"]

MIB = 1024 * 1024
AGAIN_SECONDS = 600.0
STEPS = 50
# The disks that are counted into what machines hold, as they are named in any pool.
DISK = re.compile(rf"[0-9a-f-]{{36}}-root[.]qcow2|{PREFIX}.*[.](qcow2|raw)")


class _Measured(NamedTuple):
    """What was found, when, and how much was in use at that moment."""

    told_mib: int
    used_mib: int
    at: float


@dataclass(slots=True)
class Foreign:
    """Measures pools of one host, by their names."""

    clock: Callable[[], float] = time.monotonic
    _known: dict[str, _Measured] = field(default_factory=dict)

    def mib(self, pool: Pool) -> int:
        """Return how many MiB of a pool others took."""
        capacity, available = pool.room()
        step, used = max(capacity // STEPS, 1), capacity - available
        known, now = self._known.get(pool.name), self.clock()
        if known and abs(used - known.used_mib) < step and now - known.at < AGAIN_SECONDS:
            return known.told_mib
        taken = max(used - _of_disks(pool), 0)
        told = known.told_mib if known else 0
        if not told - 2 * step < taken <= told:
            told = min(-(-taken // step) * step, capacity)
        self._known[pool.name] = _Measured(told, used, now)
        return told


def _of_disks(pool: Pool) -> int:
    """Return how many MiB disks take, each no more than is reserved for it."""
    return sum(map(_taken, pool.pool.listAllVolumes())) // MIB


def _taken(volume: libvirt.virStorageVol) -> int:
    if not DISK.fullmatch(volume.name()):
        return 0
    try:
        _, capacity, allocation = volume.info()
    except libvirt.libvirtError:
        return 0  # it went this moment
    # Of a raw one libvirt tells as capacity whatever its guest wrote to its beginning.
    return int(allocation if volume.name().endswith(".raw") else min(capacity, allocation))
