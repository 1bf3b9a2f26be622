"""The six metrics of the specification: their names, their labels, and what they count."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from novacron.app.kubevirt_metrics import MOST_NETWORKS, KubeVirtMetrics
from novacron.runtime.cache import Cache
from novacron.runtime.metrics import RuntimeMetrics
from novacron.runtime.resource import Resource

GROUP = "vitistack.io"
MACHINES = Resource(GROUP, "v1alpha1", "machines", "Machine")
CLASSES = Resource(GROUP, "v1alpha1", "machineclasses", "MachineClass", namespaced=False)
NETWORKS = Resource(GROUP, "v1alpha1", "networkconfigurations", "NetworkConfiguration")
NOW = datetime(2030, 1, 1, 12, 0, 8, tzinfo=UTC)


class Counted:
    """The metrics and the caches they are counted from."""

    def __init__(self, *, owns: bool = True) -> None:
        self.registry = CollectorRegistry()
        self.metrics = KubeVirtMetrics(
            lambda _: owns, RuntimeMetrics(CollectorRegistry()), lambda: NOW
        )
        self.machines, self.classes, self.networks = (
            Cache(each) for each in (MACHINES, CLASSES, NETWORKS)
        )
        related = {each.resource.plural: each for each in (self.classes, self.networks)}
        self.metrics.follow(self.machines, related)
        self.registry.register(self.metrics)
        self.version = 0

    def declare(self, name: str, spec: dict[str, Any] | None = None, **status: Any) -> None:
        """Have a Machine be like this."""
        self.version += 1
        metadata = {
            "name": name,
            "namespace": "default",
            "uid": name,
            "resourceVersion": str(self.version),
        }
        self.machines.seen({"metadata": metadata, "spec": spec or {}, "status": status})

    def value(self, name: str, **labels: str) -> float | None:
        """Return a sample."""
        return self.registry.get_sample_value(f"kubevirt_operator_{name}", labels)


def not_ready(reason: str, **others: str) -> dict[str, Any]:
    """Return a status that is not Ready for a reason."""
    claims = [{"type": "Ready", "status": "False", "reason": reason}]
    claims += [{"type": kind, "status": status} for kind, status in others.items()]
    return {"phase": "Pending", "conditions": claims}


@pytest.fixture
def counted() -> Counted:
    """Metrics of a process that owns everything."""
    return Counted()


def test_all_six_are_served_under_the_names_of_the_specification(counted: Counted) -> None:
    text = generate_latest(counted.registry).decode()
    kinds = dict(line.split()[2:4] for line in text.splitlines() if line.startswith("# TYPE"))
    assert kinds == {
        "kubevirt_operator_machines_total": "gauge",
        "kubevirt_operator_reconciliation_duration_seconds": "histogram",
        "kubevirt_operator_reconciliation_errors_total": "counter",
        "kubevirt_operator_virtual_machines_total": "gauge",
        "kubevirt_operator_storage_provisioning_duration_seconds": "histogram",
        "kubevirt_operator_network_configuration_errors_total": "counter",
    }


def test_machines_are_counted_by_phase_and_by_templates_that_exist(counted: Counted) -> None:
    counted.declare("a", {"template": "small"}, phase="Running")
    counted.declare("b", {"template": "small"}, phase="Running")
    counted.declare("c", {"template": "typed-by-a-user"}, phase="Failed")
    counted.declare("d", {})
    assert counted.value("machines_total", phase="Running", template="small") == 2
    assert counted.value("machines_total", phase="Failed", template="other") == 1
    assert counted.value("machines_total", phase="Pending", template="") == 1


def test_an_error_counts_once_for_as_long_as_it_lasts(counted: Counted) -> None:
    def errors(kind: str) -> float | None:
        return counted.value("reconciliation_errors_total", controller="Machine", error_type=kind)

    counted.declare("a", **not_ready("StorageClassNotFound"))
    assert errors("StorageClassNotFound") is None, "it happened before our time"
    counted.declare("a", **not_ready("InsufficientResources"))
    counted.declare("a", **not_ready("InsufficientResources"))
    assert errors("InsufficientResources") == 1
    counted.declare("a", **not_ready("Creating"))
    counted.declare("a", **not_ready("SomethingNew"))
    counted.metrics.reconciled("machines", "error", 0.1)
    assert errors("other") == 2
    assert counted.value("reconciliation_duration_seconds_count", controller="Machine") == 1


def test_networks_at_fault_are_named_and_not_without_end(counted: Counted) -> None:
    broken = not_ready("NetworkConfigurationNotFound", NetworkReady="False")
    for number in range(MOST_NETWORKS + 5):
        spec = {"networks": [{"name": "eth0", "networkName": f"net-{number}"}]}
        counted.declare(f"m{number}", spec)
        counted.declare(f"m{number}", spec, **broken)
    assert counted.value("network_configuration_errors_total", network_name="net-0") == 1
    assert counted.value("network_configuration_errors_total", network_name="other") == 5


def test_machines_of_another_replica_are_its_own_to_count() -> None:
    counted = Counted(owns=False)
    counted.declare("a", {"template": "small"}, phase="Running")
    assert counted.value("machines_total", phase="Running", template="small") is None


def test_a_volume_takes_from_its_claim_to_its_being_bound(counted: Counted) -> None:
    claims = Cache(Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim"))
    claims.subscribe(lambda change: counted.metrics._claim_changed("kubevirt://", change))
    made = NOW - timedelta(seconds=8)
    for version, phase in enumerate(("Pending", "Bound", "Bound"), start=1):
        metadata = {
            "name": "a-root",
            "namespace": "default",
            "resourceVersion": str(version),
            "creationTimestamp": made.isoformat(),
            "labels": {"vitistack.io/machine": "a"},
        }
        spec = {"storageClassName": "fast"}
        claims.seen({"metadata": metadata, "spec": spec, "status": {"phase": phase}})
    about = "storage_provisioning_duration_seconds"
    assert counted.value(f"{about}_count", storage_class="fast") == 1
    assert counted.value(f"{about}_sum", storage_class="fast") == 8
