"""Metrics about machines: how many in which phase, and what they use."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from novacron.controllers.inventory import InventoryWatch
from novacron.core.machine import Usage
from novacron.runtime.cache import Cache, Change
from novacron.runtime.resource import Key

__all__ = ["MachineMetrics"]

MIB = 2**20


@dataclass(slots=True, eq=False)  # the registry keeps it by identity
class MachineMetrics(Collector):
    """Counts this process's own machines when somebody asks, so that replicas add up."""

    inventory: InventoryWatch
    owns: Callable[[Key], bool]
    _phases: dict[tuple[str, Key], str] = field(default_factory=dict)

    def follow(self, cache: Cache) -> None:
        """Count the machines of a cache."""
        plural = str(cache.resource)

        def changed(change: Change) -> None:
            if change.object is None:
                self._phases.pop((plural, change.key), None)
            else:
                phase = (change.object.get("status") or {}).get("phase") or "Pending"
                self._phases[plural, change.key] = phase

        cache.subscribe(changed)

    def collect(self) -> Iterable[Metric]:
        """Return the families."""
        total = GaugeMetricFamily(
            "novacron_vm_total", "Total number of VMs", labels=["namespace", "phase"]
        )
        counts = Counter(
            (key.namespace, phase) for (_, key), phase in self._phases.items() if self.owns(key)
        )
        for labels, count in counts.items():
            total.add_metric(labels, count)
        cpu = GaugeMetricFamily(
            "novacron_vm_cpu_usage_cores", "CPU usage in cores", labels=["namespace", "vm", "node"]
        )
        memory = GaugeMetricFamily(
            "novacron_vm_memory_usage_bytes",
            "Memory usage in bytes",
            labels=["namespace", "vm", "node"],
        )
        disk = GaugeMetricFamily(
            "novacron_vm_disk_usage_bytes",
            "Disk space that a machine's disks take, by disk: root or a volume's name",
            labels=["namespace", "vm", "node", "disk"],
        )
        for owner, host, usage in self.inventory.usages():
            if self.owns(owner.key):
                machine = (owner.key.namespace, owner.key.name, host)
                if usage.cpu_cores is not None:
                    cpu.add_metric(machine, usage.cpu_cores)
                if usage.memory_mib is not None:
                    memory.add_metric(machine, usage.memory_mib * MIB)
                for name, size_mib in _disks(usage):
                    disk.add_metric((*machine, name), size_mib * MIB)
        return (total, cpu, memory, disk)


def _disks(usage: Usage) -> Iterator[tuple[str, int]]:
    if usage.disk_mib is not None:
        yield "root", usage.disk_mib
    yield from usage.volumes_mib
