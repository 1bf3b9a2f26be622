"""Hosts that are full, cordoned, tainted, slow, broken or leaving, and what users are told."""

import pytest

from api import Refused
from e2e.conftest import Stage
from e2e.test_moves import novacron
from machines import condition, virtual_machine
from operators import eventually


def fault(operation: str, error: str, **more: object) -> dict[str, object]:
    """Return a simulated host's section with one fault."""
    return {"faults": [{"operation": operation, "error": error, **more}]}


def test_a_host_tells_its_capacity_and_its_machines(stage: Stage) -> None:
    """kubectl get hosts shows room and use."""
    host = stage.add_host(cpu=8, memory="16Gi", disk="1Ti", overcommit={"cpu": 4})
    obj = stage.until_host(host, lambda obj: "capacity" in obj["status"])
    assert obj["status"]["capacity"] == {"cpu": 8, "memory": "16Gi", "disk": "1Ti"}
    assert obj["status"]["allocatable"]["cpu"] == 32
    stage.api.create(virtual_machine("one", stage.namespace, on=host))
    stage.until_host(host, lambda obj: obj["status"]["machines"] == 1)


def test_machines_beyond_the_capacity_wait_and_each_host_has_its_reason(stage: Stage) -> None:
    """Full is a reason with figures; deleting a machine makes room for the next."""
    host = stage.add_host(cpu=4)
    for number in range(3):
        stage.api.create(virtual_machine(f"vm-{number}", stage.namespace, cpu=2, on=host))
    waiting = None
    for name in ("vm-0", "vm-1", "vm-2"):
        obj = stage.until(name, lambda obj: bool(condition(obj, "Ready")))
        if condition(obj, "Placed"):
            waiting = obj
    assert waiting is not None
    assert condition(waiting, "Placed")["reason"] == "NoHostFits"
    assert "lacks CPU (2 asked, 0 free)" in condition(waiting, "Placed")["message"]
    assert waiting["status"]["phase"] == "Pending"
    name = waiting["metadata"]["name"]
    stage.until_event(name, "NoHostFits")
    stage.api.delete_machine(stage.namespace, "vm-0" if name != "vm-0" else "vm-1")
    stage.until_running(name)


def test_cordoned_and_tainted_hosts_get_no_new_machines(stage: Stage) -> None:
    """They keep what they have."""
    cordoned = stage.add_host()
    stage.api.create(virtual_machine("before", stage.namespace, on=cordoned))
    stage.until_running("before")
    stage.close(cordoned)
    stage.api.create(virtual_machine("after", stage.namespace, on=cordoned))
    obj = stage.until("after", lambda obj: bool(condition(obj, "Placed")))
    assert "cordoned" in condition(obj, "Placed")["message"]
    stage.until_running("before")
    taints = [{"key": "maintenance", "effect": "NoSchedule"}]
    stage.api.patch_host(cordoned, {"spec": {"unschedulable": False, "taints": taints}})
    obj = stage.until(
        "after", lambda obj: "maintenance" in condition(obj, "Placed").get("message", "")
    )
    stage.api.patch_host(cordoned, {"spec": {"taints": None}})
    stage.until_running("after")


def test_a_host_that_refuses_for_lack_of_room_is_left_for_another(stage: Stage) -> None:
    """OutOfCapacity is not a failure of the machine: the placer gets a second try."""
    full = fault("create", "OutOfCapacity", message="it is full")
    refusing = stage.declare_host(simulation=full, cpu=1000)
    stage.until_host(refusing, lambda obj: condition(obj, "Ready").get("status") == "True")
    stage.api.create(virtual_machine("mover", stage.namespace, on=refusing))
    stage.until(
        "mover",
        lambda obj: (
            condition(obj, "Placed").get("status") == "False"
            or refusing in obj.get("status", {}).get("refusedHosts", ())
        ),
    )
    said = novacron(stage, "explain", "vm", "mover").stdout
    assert "mover is on no host\nwhen it was last tried: " in said
    assert "it is full" in said
    stage.api.patch_host(refusing, {"spec": {"simulation": {"faults": None}}})
    other = stage.add_host(labels={"test/host": refusing})
    obj = stage.until_running("mover")
    assert obj["status"]["nodeName"] in (refusing, other)
    assert "refusedHosts" not in obj["status"]


def test_a_driver_that_rejects_a_machine_fails_it_with_the_driver_s_words(stage: Stage) -> None:
    """A new spec is needed; nothing is tried again and again."""
    host = stage.add_host(
        simulation=fault("create", "Rejected", message="this image is for another architecture")
    )
    stage.api.create(virtual_machine("odd", stage.namespace, on=host))
    obj = stage.until("odd", lambda obj: obj.get("status", {}).get("phase") == "Failed")
    ready = condition(obj, "Ready")
    assert ready["status"] == "False"
    assert ready["reason"] == "Rejected"
    assert ready["message"] == "this image is for another architecture"


def test_a_host_that_goes_down_leaves_its_machines_unknown_and_recovers(stage: Stage) -> None:
    """Nobody claims to know what nobody can see; when the host is back, all is well by itself."""
    host = stage.add_host()
    stage.api.create(virtual_machine("far", stage.namespace, on=host))
    stage.until_running("far")
    down = [
        {"operation": operation, "error": "Unreachable", "message": "no route to host"}
        for operation in ("observe", "hosts", "start", "stop", "create", "delete", "resize")
    ]
    stage.api.patch_host(host, {"spec": {"simulation": {"faults": down}}})
    stage.until_host(host, lambda obj: condition(obj, "Ready")["status"] == "False")
    stage.api.patch_machine(stage.namespace, "far", {"spec": {"running": False}})
    obj = stage.until("far", lambda obj: condition(obj, "Ready")["status"] == "Unknown")
    assert condition(obj, "Ready")["reason"] == "HostUnreachable"
    assert obj["status"]["phase"] == "Running"
    stage.api.patch_host(host, {"spec": {"simulation": {"faults": None}}})
    stage.until("far", lambda obj: obj["status"]["phase"] == "Stopped")


def test_flaky_hosts_only_cost_time(stage: Stage) -> None:
    """Faults at a rate: every machine gets there, none is made twice."""
    host = stage.add_host(simulation=fault("create", "Busy", rate=0.5))
    names = [f"flaky-{number}" for number in range(6)]
    for name in names:
        stage.api.create(virtual_machine(name, stage.namespace, on=host))
    for name in names:
        stage.until_running(name)
    with stage.world() as world:
        made = [machine.name for machine in world.machines() if machine.host == host]
    assert sorted(made) == names


def test_a_host_with_machines_does_not_go_before_they_have_gone(stage: Stage) -> None:
    """Without it they could be neither reached nor removed; the webhook says so at once."""
    host = stage.add_host()
    stage.api.create(virtual_machine("last", stage.namespace, on=host))
    stage.until_running("last")
    with pytest.raises(Refused, match=f"host {host} cannot go: 1 machine is on it"):
        stage.api.delete_host(host)
    stage.api.delete_machine(stage.namespace, "last")
    stage.until_gone("last")


def test_slow_operations_show_while_they_last(stage: Stage) -> None:
    """A user who looks in between sees what is going on."""
    host = stage.add_host(simulation={"delays": {"create": "2s", "start": "1s"}})
    stage.api.create(virtual_machine("slow", stage.namespace, on=host))
    obj = stage.until("slow", lambda obj: condition(obj, "Ready").get("reason") == "Creating")
    assert obj["status"]["phase"] == "Pending"
    stage.until("slow", lambda obj: condition(obj, "Ready").get("reason") == "Starting")
    stage.until_running("slow")


def test_a_name_at_the_limit_works_and_one_beyond_is_refused(stage: Stage) -> None:
    """Guests take the name as their host name."""
    host = stage.add_host()
    stage.api.create(virtual_machine("n" * 63, stage.namespace, on=host))
    stage.until_running("n" * 63)
    with pytest.raises(Refused, match="63"):
        stage.api.create(virtual_machine("n" * 64, stage.namespace))


def test_metrics_have_the_five_families_of_the_specification(stage: Stage) -> None:
    """Names, labels and buckets as dashboards expect them."""
    host = stage.add_host()
    stage.api.create(virtual_machine("measured", stage.namespace, cpu=4, on=host))
    stage.until_running("measured")
    machine = f'{{namespace="{stage.namespace}",node="{host}",vm="measured"}}'

    def metrics() -> str:
        return stage.operator.get("metrics", "/metrics") or ""

    eventually(lambda: f"novacron_vm_cpu_usage_cores{machine} 1.0" in metrics(), metrics)
    text = metrics()
    assert f'novacron_vm_total{{namespace="{stage.namespace}",phase="Running"}} 1.0' in text
    assert "novacron_vm_memory_usage_bytes{" in text
    assert 'novacron_reconcile_total{controller="virtualmachines",result="success"}' in text
    for bucket in ("0.001", "0.002", "0.004", "8.192", "16.384", "+Inf"):
        assert f'controller="virtualmachines",le="{bucket}"' in text
    for family in (
        "novacron_queue_depth",
        "novacron_queue_wait_seconds",
        "novacron_reconcile_retries_total",
        "novacron_api_requests_total",
        "novacron_watch_restarts_total",
        "novacron_lease_held",
    ):
        assert f"# TYPE {family.removesuffix('_total')}" in text, family
