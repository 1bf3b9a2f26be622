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
    """Remembers the last reading: how busy a CPU was is a difference of two.

    ``states`` are those of all guests at that moment, with the reason for each.
    """

    clock: Callable[[], float] = time.monotonic
    states: dict[str, tuple[int, int]] = field(default_factory=dict)
    _readings: dict[str, tuple[int, float]] = field(default_factory=dict)
    _measured: dict[str, Usage] = field(default_factory=dict)

    def read(self, connection: libvirt.virConnect) -> dict[str, Usage]:
        """Return what every guest uses, by its domain's UUID. Blocks."""
        # Not waiting: a guest whose memory is being saved would hold up the look at all others.
        flags = (
            libvirt.VIR_CONNECT_GET_ALL_DOMAINS_STATS_ACTIVE
            | libvirt.VIR_CONNECT_GET_ALL_DOMAINS_STATS_NOWAIT
        )
        measured: dict[str, Usage] = {}
        readings: dict[str, tuple[int, float]] = {}
        states: dict[str, tuple[int, int]] = {}
        for handle, stats in connection.getAllDomainStats(STATS, flags):
            uuid = handle.UUIDString()
            if "state.state" in stats:
                states[uuid] = (stats["state.state"], stats.get("state.reason", 0))
            readings[uuid] = (stats.get("cpu.time", 0), self.clock())
            cores = self._cores(uuid, readings[uuid])
            if cores is None:
                continue  # half of a measurement is not worth telling
            before = self._measured.get(uuid, Usage())
            memory, disk = _memory(stats), _disk(stats)
            measured[uuid] = Usage(
                cpu_cores=cores,
                memory_mib=before.memory_mib if memory is None else memory,
                disk_mib=before.disk_mib if disk is None else disk,
                volumes_mib=tuple(_disks(stats)) or before.volumes_mib,
            )
        self.states, self._readings, self._measured = states, readings, measured
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
