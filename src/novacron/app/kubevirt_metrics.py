"""The metrics that the specification of the Viti Stack's KubeVirt operator names.

Counted from what is known anyway: Machines in the cache, how their conditions change, rounds of
their controller, and what KubeVirt clusters tell of VirtualMachines and claims.
"""

from collections import Counter as Count
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from prometheus_client import Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from novacron.core.driver import Driver
from novacron.families.viti.marks import MACHINE
from novacron.families.viti.tally import OTHER, Tally, tally
from novacron.runtime.cache import Cache, Change
from novacron.runtime.controller import ReconcileObserver
from novacron.runtime.metrics import EXPONENTIAL_BUCKETS
from novacron.runtime.resource import Key, Object

__all__ = ["KubeVirtMetrics", "about"]

PREFIX = "kubevirt_operator"
CONTROLLER = "Machine"
# From a volume that is there at once to one that somebody has to see to.
PROVISIONING_BUCKETS = (0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0)
# Users call networks as they like; past so many, one series stands for all others.
MOST_NETWORKS = 100
BOUND = "Bound"


def _histogram(name: str, about: str, label: str, buckets: tuple[float, ...]) -> Histogram:
    return Histogram(f"{PREFIX}_{name}", about, [label], buckets=buckets, registry=None)


@dataclass(slots=True, eq=False)  # the registry keeps it by identity
class KubeVirtMetrics(Collector):
    """Counts this process's own Machines, so that replicas add up.

    It is also told of every round of their controller.
    """

    owns: Callable[[Key], bool]
    also: ReconcileObserver
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    _machines: dict[Key, Tally] = field(default_factory=dict)
    _related: dict[str, Cache] = field(default_factory=dict)
    _states: dict[tuple[str, Key], str] = field(default_factory=dict)
    _unbound: set[tuple[str, Key]] = field(default_factory=set)
    _networks: set[str] = field(default_factory=set)
    _durations: Histogram = field(
        default_factory=lambda: _histogram(
            "reconciliation_duration_seconds",
            "Reconciliation duration",
            "controller",
            EXPONENTIAL_BUCKETS,
        )
    )
    _errors: Counter = field(
        default_factory=lambda: Counter(
            f"{PREFIX}_reconciliation_errors",
            "Reconciliation errors",
            ["controller", "error_type"],
            registry=None,
        )
    )
    _provisioning: Histogram = field(
        default_factory=lambda: _histogram(
            "storage_provisioning_duration_seconds",
            "Storage provisioning time",
            "storage_class",
            PROVISIONING_BUCKETS,
        )
    )
    _network_errors: Counter = field(
        default_factory=lambda: Counter(
            f"{PREFIX}_network_configuration_errors",
            "Network configuration errors",
            ["network_name"],
            registry=None,
        )
    )

    def follow(self, cache: Cache, related: dict[str, Cache]) -> None:
        """Count the Machines of a cache; ``related`` are those of what they refer to."""
        self._related = related
        cache.subscribe(self._machine_changed)

    def made(self, name: str, driver: Driver) -> None:
        """Count what a cluster tells, from when a driver for it was made."""
        from novacron.drivers.kubevirt import KubeVirtDriver  # noqa: PLC0415 - as in app.drivers

        if isinstance(driver, KubeVirtDriver):
            cluster = driver.cluster
            cluster.machines.cache.subscribe(lambda change: self._vm_changed(name, change))
            cluster.claims.cache.subscribe(lambda change: self._claim_changed(name, change))

    def left(self, name: str) -> None:
        """Forget what a cluster told that is followed no more."""
        for known in (self._states, self._unbound):
            for each in [each for each in known if each[0] == name]:
                known.pop(each) if isinstance(known, dict) else known.discard(each)

    def reconciled(self, controller: str, result: str, seconds: float) -> None:
        """Count one round of the Machines' controller."""
        self._durations.labels(CONTROLLER).observe(seconds)
        if result == "error":
            self._errors.labels(CONTROLLER, OTHER).inc()
        self.also.reconciled(controller, result, seconds)

    def collect(self) -> Iterable[Metric]:
        """Return all families."""
        machines = GaugeMetricFamily(
            f"{PREFIX}_machines_total", "Total machines by phase", labels=["phase", "template"]
        )
        mine = (each for key, each in self._machines.items() if self.owns(key))
        for labels, number in Count((each.phase, each.template) for each in mine).items():
            machines.add_metric(labels, number)
        created = GaugeMetricFamily(
            f"{PREFIX}_virtual_machines_total",
            "Created VirtualMachine resources",
            labels=["status"],
        )
        states = (state for (_, key), state in self._states.items() if self.owns(key))
        for state, number in Count(states).items():
            created.add_metric([state], number)
        yield from (machines, created)
        for each in (self._durations, self._errors, self._provisioning, self._network_errors):
            yield from each.collect()

    def _machine_changed(self, change: Change) -> None:
        before = self._machines.pop(change.key, None)
        if change.object is None:
            return
        found = tally(
            change.object,
            lambda name: self._is_there("machineclasses", "", name),
            lambda name: self._is_there("networkconfigurations", change.key.namespace, name),
        )
        self._machines[change.key] = found
        if before is None or not self.owns(change.key):
            return  # what it is at first sight happened before our time
        if found.error and found.error != before.error:
            self._errors.labels(CONTROLLER, found.error).inc()
        for name in found.networks if found.networks != before.networks else ():
            self._network_errors.labels(self._counted_network(name)).inc()

    def _is_there(self, plural: str, namespace: str, name: str) -> bool:
        return Key(namespace, name) in self._related[plural]

    def _counted_network(self, name: str) -> str:
        if len(self._networks) < MOST_NETWORKS:
            self._networks.add(name)
        return name if name in self._networks else OTHER

    def _vm_changed(self, cluster: str, change: Change) -> None:
        if change.object is None:
            self._states.pop((cluster, change.key), None)
            return
        state = (change.object.get("status") or {}).get("printableStatus")
        self._states[cluster, change.key] = state or "Unknown"

    def _claim_changed(self, cluster: str, change: Change) -> None:
        where = (cluster, change.key)
        phase = ((change.object or {}).get("status") or {}).get("phase")
        if change.object is None:
            self._unbound.discard(where)
        elif phase != BOUND:
            self._unbound.add(where)
        elif where in self._unbound:
            self._unbound.discard(where)
            self._provided(change.object)

    def _provided(self, claim: Object) -> None:
        metadata = claim["metadata"]
        owner = metadata["labels"].get(MACHINE, metadata["name"])
        if self.owns(Key(metadata["namespace"], owner)):
            made = datetime.fromisoformat(metadata["creationTimestamp"])
            name = claim["spec"].get("storageClassName") or ""
            self._provisioning.labels(name).observe((self.now() - made).total_seconds())


def about(cache: Cache, key: Key) -> dict[str, object]:
    """Return how a Machine is called in log lines, as its specification has it."""
    obj = cache.get(key) or {}
    phase = (obj.get("status") or {}).get("phase") or "Pending"
    return {
        "controller": CONTROLLER,
        "machine": key.name,
        "namespace": key.namespace,
        "phase": phase,
    }
