"""Hosts that somebody switched off: how that is said, and that nothing begins anew before it is."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from api import Api
from e2e.conftest import Stage
from e2e.test_host_nodes import node
from e2e.test_moves import hosts_of, novacron, pair, placed
from machines import condition
from novacron.core.machine import Power
from novacron.drivers.simulation.faults import Operation
from novacron.localcluster.controlplane import ControlPlane
from operators import RunningOperator, eventually
from pseudo_terminal import PseudoTerminal

__all__ = ["node"]

OUT_OF_SERVICE = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
MAINTENANCE = {"key": "maintenance", "value": "soon", "effect": "PreferNoSchedule"}
FENCE = (sys.executable, "-m", "novacron.app.entry", "host", "fence")
GRACE_SECONDS = 2
GPU = {"type": "gpu", "vendor": "nvidia", "model": "tesla-t4"}
DOWN = [
    {"operation": operation.value, "error": "Unreachable", "message": "no route to host"}
    for operation in Operation
]


@pytest.fixture(scope="module")
def everyday(
    cluster: ControlPlane, api: Api, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningOperator]:
    """An operator that gives silent hosts two seconds instead of sixty."""
    namespace = f"fences-{uuid4().hex[:8]}"
    api.create_namespace(namespace)
    directory: Path = tmp_path_factory.mktemp("operator")
    flags = ("--no-leader-elect", f"--host-failure-grace={GRACE_SECONDS}s")
    operator = RunningOperator(cluster, directory, [namespace], flags=flags).start()
    yield operator
    assert operator.stop() == 0, operator.log


def taints(stage: Stage, host: str) -> list[dict[str, str]]:
    """Return what is written on a host."""
    found: list[dict[str, str]] = (stage.api.host(host) or {})["spec"].get("taints") or []
    return found


def as_user(stage: Stage) -> dict[str, str]:
    """Return what a shell of a user of the cluster has set."""
    return {**os.environ, "KUBECONFIG": str(stage.api.kubeconfig)}


def test_a_program_fences_a_host_and_takes_it_back(stage: Stage) -> None:
    """It asks nothing, and other taints of the host stay what they are."""
    host = stage.add_host(taints=[MAINTENANCE])
    for _ in range(2):
        done = novacron(stage, "host", "fence", host, "--yes", namespaced=False)
        assert done.stdout == f"hosts.novacron.io/{host} is taken for switched off\n"
        assert taints(stage, host) == [MAINTENANCE, OUT_OF_SERVICE]
    novacron(stage, "host", "unfence", host, namespaced=False)
    assert taints(stage, host) == [MAINTENANCE]
    again = novacron(stage, "host", "unfence", host, namespaced=False, fails=True)
    assert again.stderr == f"error: {host} is not taken for switched off\n"


def test_a_program_that_forgets_to_say_yes_is_told_and_nothing_is_done(stage: Stage) -> None:
    """Also one that holds its end of the pipe open and would be waited for until doomsday."""
    host = stage.add_host()
    process = subprocess.Popen(
        [*FENCE, host],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=as_user(stage),
    )
    with process:
        try:
            assert process.wait(60) == 1
        finally:
            process.kill()
        assert process.stderr is not None
        said = process.stderr.read()
    assert f"Were {host} not off, its machines would run twice" in said
    assert "add --yes if so" in said
    assert taints(stage, host) == []


@pytest.mark.parametrize(("key", "written"), [(b"n", []), (b"y", [OUT_OF_SERVICE])])
def test_a_person_is_asked(stage: Stage, key: bytes, written: list[dict[str, str]]) -> None:
    """No means no."""
    host = stage.add_host()
    terminal = PseudoTerminal([*FENCE, host], as_user(stage))
    try:
        terminal.until(r"switched off\? \[y/N\]")
        terminal.type(key + b"\n")
        assert terminal.ended() == (0 if written else 1)
    finally:
        terminal.close()
    assert taints(stage, host) == written


def test_machines_begin_anew_elsewhere_only_when_the_node_of_their_host_is_fenced(
    stage: Stage, node: str, cluster: ControlPlane
) -> None:
    """Silence proves nothing, however long; the taint on the Node that the Host names does."""
    here, there = pair(stage)
    placed(stage, "lost", here)
    named = {"spec": {"nodeRef": {"name": node}, "simulation": {"faults": DOWN}}}
    stage.api.patch_host(here, named)
    stage.until_host(here, lambda obj: condition(obj, "Ready")["status"] == "False")
    stage.until("lost", lambda obj: condition(obj, "Ready")["status"] == "Unknown")
    time.sleep(GRACE_SECONDS + 2)  # longer than a host may be silent
    obj = stage.api.machine(stage.namespace, "lost") or {}
    assert obj["status"]["nodeName"] == here
    assert hosts_of(stage, "lost") == [(here, Power.ON)]
    cluster.kubectl("taint", "node", node, f"{OUT_OF_SERVICE['key']}=:{OUT_OF_SERVICE['effect']}")
    stage.until("lost", lambda obj: obj["status"]["nodeName"] == there)
    stage.until_running("lost")
    assert (there, Power.ON) in hosts_of(stage, "lost")
    stage.api.patch_host(here, {"spec": {"simulation": {"faults": None}}})
    stage.until("lost", lambda obj: not obj["status"].get("leftoverHosts"))
    assert hosts_of(stage, "lost") == [(there, Power.ON)], "what the first host had is removed"
    told = novacron(stage, "host", "unfence", here, namespaced=False, fails=True)
    undo = f"kubectl taint node {node} {OUT_OF_SERVICE['key']}-"
    assert told.stderr == (
        f"error: {here} is still taken for switched off, as its Node says: {undo}\n"
    )
    cluster.kubectl(*undo.split()[1:])
    stage.until_host(here, lambda obj: not obj["status"].get("node", {}).get("taints"))


def test_a_machine_that_begins_anew_gets_devices_of_the_host_that_it_begins_on(
    stage: Stage,
) -> None:
    """What was its own elsewhere is somebody else's here."""
    label, gpu = {"test/pair": stage.namespace}, [{"type": "gpu"}]
    one, two = ({"address": f"0000:{bus}:00.0", **GPU} for bus in ("3b", "af"))
    here = stage.add_host(labels=label, simulation={"devices": [one]})
    shown = placed(stage, "trainer", here, devices=gpu)
    assert [each["address"] for each in shown["status"]["devices"]] == ["0000:3b:00.0"]
    there = stage.add_host(labels=label, simulation={"devices": [one, two]})
    placed(stage, "other", there, devices=gpu)
    off = {"taints": [OUT_OF_SERVICE], "simulation": {"faults": DOWN}}
    stage.api.patch_host(here, {"spec": off})
    stage.until("trainer", lambda obj: obj["status"]["nodeName"] == there)
    anew = stage.until_running("trainer")
    assert [each["address"] for each in anew["status"]["devices"]] == ["0000:af:00.0"]
    with stage.world() as world:
        assert world.devices()[there, "0000:af:00.0"] == anew["metadata"]["uid"]


def test_a_host_that_is_gone_for_good_keeps_neither_its_machines_nor_itself(stage: Stage) -> None:
    """What may be left there is its owner's to forget, once somebody says that it is off."""
    here = stage.add_host(labels={"test/pair": stage.namespace})
    placed(stage, "drowned", here)
    stage.api.patch_host(here, {"spec": {"simulation": {"faults": DOWN}}})
    stage.until_host(here, lambda obj: condition(obj, "Ready")["status"] == "False")
    stage.until("drowned", lambda obj: condition(obj, "Ready")["status"] == "Unknown")
    novacron(stage, "host", "fence", here, "--yes", namespaced=False)
    stage.api.delete_machine(stage.namespace, "drowned")
    told = novacron(stage, "host", "remove", here, namespaced=False, fails=True)
    assert told.stderr == (
        f'error: host "{here}" still has 1 machine(s): {stage.namespace}/drowned; '
        "move or delete them first\n"
    )
    forget = {"metadata": {"annotations": {"novacron.io/abandon": "true"}}}
    stage.api.patch_machine(stage.namespace, "drowned", forget)
    stage.until_event("drowned", "Abandoned")
    stage.until_gone("drowned")
    novacron(stage, "host", "remove", here, namespaced=False)
    eventually(lambda: stage.api.host(here) is None, lambda: f"{stage.api.host(here)}")
