"""Many machines with rules and devices, placed while several processes work and the leader dies."""

from collections import Counter
from typing import Any

from api import Api
from e2e.test_replicas import Replicas, replicas
from machines import condition, host, virtual_machine
from novacron.drivers.simulation import World
from operators import eventually

__all__ = ["replicas"]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
HOSTS, GPUS_EACH, APPS, EACH_APP = 6, 2, 12, 6
SPREAD = APPS * EACH_APP
GPU_MACHINES = HOSTS * GPUS_EACH
TOO_MANY = 4


def spread(namespace: str, app: int, number: int) -> dict[str, Any]:
    """Return a machine that must be apart from all others of its app."""
    selector = {"labelSelector": {"matchLabels": {"app": f"app-{app}"}}}
    obj = virtual_machine(
        f"app-{app}-{number}",
        namespace,
        nodeSelector={"group": namespace},
        affinity={"podAntiAffinity": {REQUIRED: [selector]}},
    )
    obj["spec"]["template"]["metadata"] = {"labels": {"app": f"app-{app}"}}
    return obj


def with_gpu(namespace: str, number: int) -> dict[str, Any]:
    """Return a machine that needs a GPU."""
    devices = [{"type": "gpu", "vendor": "nvidia"}]
    selector = {"group": namespace}
    return virtual_machine(f"gpu-{number}", namespace, nodeSelector=selector, devices=devices)


def test_rules_and_devices_hold_when_many_machines_come_at_once_and_the_leader_dies(
    replicas: Replicas,
    api: Api,
) -> None:
    """Every host has one machine of every app and every GPU one owner, and nothing is left over."""
    namespace = replicas.namespace
    names = [f"{namespace}-{number}" for number in range(HOSTS)]
    for name in names:
        devices = [
            {"address": f"0000:3b:00.{n}", "type": "gpu", "vendor": "nvidia", "model": "t4"}
            for n in range(GPUS_EACH)
        ]
        api.create(host(name, labels={"group": namespace}, simulation={"devices": devices}))
    wanted = [spread(namespace, app, n) for n in range(EACH_APP) for app in range(APPS)]
    wanted += [with_gpu(namespace, number) for number in range(GPU_MACHINES + TOO_MANY)]
    half = len(wanted) // 2
    for obj in wanted[:half]:
        api.create(obj)
    replicas.leader().kill()
    for obj in wanted[half:]:
        api.create(obj)
    eventually(lambda: replicas.all_running(SPREAD + GPU_MACHINES), replicas.logs)
    check_rules(replicas, names)
    for obj in api.machines(namespace):
        if condition(obj, "Ready").get("status") != "True":
            message = condition(obj, "Placed")["message"]
            assert "lack devices (needs 1 gpu nvidia, has 0 free at most)" in message
    for name in names:
        api.delete_host(name)


def check_rules(replicas: Replicas, hosts: list[str]) -> None:
    """Look from outside: at the simulated hosts themselves, not at what objects say."""
    with World(replicas.directory / "simulation.db") as world:
        machines, devices = world.machines(), world.devices()
    apps = Counter(
        (machine.host, machine.name.rsplit("-", 1)[0])
        for machine in machines
        if machine.name.startswith("app-")
    )
    assert set(apps.values()) == {1}
    assert len(apps) == SPREAD
    assert len(devices) == len(set(devices.values())) == GPU_MACHINES
    assert {name for name, _ in devices} == set(hosts)
    recorded = {
        (obj["status"]["nodeName"], device["address"]): obj["metadata"]["uid"]
        for obj in replicas.api.machines(replicas.namespace)
        for device in (obj.get("status") or {}).get("devices") or ()
    }
    assert recorded == devices
