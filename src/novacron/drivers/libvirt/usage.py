"""What guests use, from one call of libvirt for all of them."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import libvirt

from novacron.core.machine import Usage

__all__ = ["Meter"]

STATS = (
    libvirt.VIR_DOMAIN_STATS_STATE
    | libvirt.VIR_DOMAIN_STATS_CPU_TOTAL
    | libvirt.VIR_DOMAIN_STATS_BALLOON
    | libvirt.VIR_DOMAIN_STATS_BLOCK
)
KIB_PER_MIB = 1024
MIB = 1024 * 1024


@dataclass(slots=True)
class Meter:
    """Remembers the last reading: how busy a CPU was is a difference of two."""

    clock: Callable[[], float] = time.monotonic
    _readings: dict[str, tuple[int, float]] = field(default_factory=dict)

    def read(self, connection: libvirt.virConnect) -> dict[str, Usage]:
        """Return what every guest uses, by its domain's UUID. Blocks."""
        flags = libvirt.VIR_CONNECT_GET_ALL_DOMAINS_STATS_ACTIVE
        measured: dict[str, Usage] = {}
        readings: dict[str, tuple[int, float]] = {}
        for handle, stats in connection.getAllDomainStats(STATS, flags):
            uuid = handle.UUIDString()
            readings[uuid] = (stats.get("cpu.time", 0), self.clock())
            measured[uuid] = Usage(
                cpu_cores=self._cores(uuid, readings[uuid]),
                memory_mib=_memory(stats),
                disk_mib=_disk(stats),
                volumes_mib=tuple(_disks(stats)),
            )
        self._readings = readings
        return measured

    def _cores(self, uuid: str, reading: tuple[int, float]) -> float | None:
        before = self._readings.get(uuid)
        if before is None or reading[1] <= before[1] or reading[0] < before[0]:
            return None
        return round((reading[0] - before[0]) / 1e9 / (reading[1] - before[1]), 1)


def _memory(stats: dict[str, Any]) -> int | None:
    """Return what the guest itself says, which includes its caches only where it cannot tell."""
    if "balloon.available" in stats and "balloon.usable" in stats:
        used = int(stats["balloon.available"]) - int(stats["balloon.usable"])
        return max(used, 0) // KIB_PER_MIB
    return int(stats["balloon.rss"]) // KIB_PER_MIB if "balloon.rss" in stats else None


def _disk(stats: dict[str, Any]) -> int | None:
    return int(stats["block.0.physical"]) // MIB if "block.0.physical" in stats else None


def _disks(stats: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """Return how much room each disk takes, by its target."""
    for number in range(int(stats.get("block.count", 0))):
        target, taken = stats.get(f"block.{number}.name"), stats.get(f"block.{number}.physical")
        if target and taken is not None:
            yield str(target), int(taken) // MIB
