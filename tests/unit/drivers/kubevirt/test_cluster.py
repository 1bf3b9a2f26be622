"""What one cluster tells, beyond each object: whether KubeVirt acts at all."""

from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from typing import Any

from novacron.drivers.kubevirt.attention import OWN_TURN
from novacron.drivers.kubevirt.cluster import Cluster
from novacron.drivers.kubevirt.names import UID
from novacron.runtime.client import Client

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


def nobody() -> AbstractAsyncContextManager[Client]:
    """Connect to nothing."""
    raise NotImplementedError


class Clock:
    """A clock that stands still."""

    now = NOON

    def __call__(self) -> datetime:
        return self.now


def vm(name: str, version: int, **status: Any) -> dict[str, Any]:
    """A VirtualMachine of a machine of the same name."""
    metadata = {
        "name": name,
        "namespace": "default",
        "resourceVersion": str(version),
        "generation": 1,
        "labels": {UID: name},
    }
    return {"metadata": metadata, "spec": {}, "status": status}


def test_an_answer_about_what_was_deleted_meanwhile_brings_nothing_back() -> None:
    """A watch may tell of the deletion before the answer comes, and never tells of it again."""
    cluster = Cluster("here", nobody)
    cluster.machines.cache.seen(vm("gone", 1))
    cluster.machines.heard(vm("gone", 2))
    found = cluster.of("gone").machine
    assert found is not None
    assert found["metadata"]["resourceVersion"] == "2"
    cluster.machines.cache.gone(vm("gone", 4))
    cluster.machines.heard(vm("gone", 3))
    assert cluster.of("gone").machine is None


def test_kubevirt_that_acts_on_others_is_busy_and_not_gone() -> None:
    clock = Clock()
    cluster = Cluster("here", nobody, now=clock)
    cluster.machines.cache.seen(vm("waits", 1))
    assert cluster.of("waits").unheeded == timedelta(0)
    clock.now += timedelta(seconds=20)
    assert cluster.of("waits").unheeded == timedelta(seconds=20)
    cluster.machines.cache.seen(vm("other", 2, desiredGeneration=1))
    assert cluster.of("waits").unheeded == timedelta(0)
    clock.now = NOON + OWN_TURN
    cluster.machines.cache.seen(vm("other", 3, desiredGeneration=1))
    assert cluster.of("waits").unheeded == OWN_TURN, "nobody is that busy"


def test_what_a_guest_said_that_failed_is_kept_until_one_runs_or_the_machine_goes() -> None:
    cluster = Cluster("here", nobody)
    guests, machines = cluster.instances.cache, cluster.machines.cache
    failed = {"type": "Synchronized", "status": "False", "message": "no kernel found"}
    machines.seen(vm("crasher", 1))
    assert cluster.of("crasher").last_words == ""
    guests.seen(vm("crasher", 2, phase="Failed", conditions=[failed]))
    guests.gone(vm("crasher", 3))
    assert cluster.of("crasher").last_words == "no kernel found"
    guests.seen(vm("crasher", 4, phase="Scheduling"))
    assert cluster.of("crasher").last_words == "no kernel found"
    guests.seen(vm("crasher", 5, phase="Running"))
    assert cluster.of("crasher").last_words == ""
    guests.seen(vm("crasher", 6, phase="Failed", conditions=[failed]))
    machines.gone(vm("crasher", 7))
    machines.seen(vm("crasher", 8))
    assert cluster.of("crasher").last_words == "", "another machine of the same name"
