"""Machines from Git: Argo CD sees no difference where there is none, and tells their health."""

from pathlib import Path
from typing import Any

import lupa.lua51
import pytest
import yaml

from e2e.kubevirt.machines import MachineStage
from gitops import difference_by_kubectl, differences

pytestmark = pytest.mark.full

Object = dict[str, Any]
REPOSITORY = Path(__file__).parents[3]
# The last needs CDI, or another cluster, to become Running; all are compared.
RUNNING = ("50", "51", "52", "53", "54", "56")
EXAMPLES = sorted((REPOSITORY / "examples").glob("5[0-7]-machine-*.yaml"))
CUSTOMIZATIONS = yaml.safe_load((REPOSITORY / "deploy/argocd/argocd-cm.yaml").read_text())["data"]


def declared(stage: MachineStage, file: Path) -> list[Object]:
    """Return the objects of an example, in the stage's namespace."""
    found: list[Object] = [each for each in yaml.safe_load_all(file.read_text()) if each]
    for each in found:
        if each["kind"] != "MachineClass":
            each["metadata"]["namespace"] = stage.bed.namespace
    return found


@pytest.mark.parametrize("file", EXAMPLES, ids=[each.stem for each in EXAMPLES])
@pytest.mark.parametrize("how", [(), ("--server-side",)], ids=["client-side", "server-side"])
def test_what_was_applied_shows_no_difference(
    stage: MachineStage, file: Path, how: tuple[str, ...]
) -> None:
    """Not at once, and not when the operator has done its work."""
    objects = declared(stage, file)
    manifest = yaml.safe_dump_all(objects)
    kubectl = stage.bed.plane.kubectl
    kubectl("apply", *how, "-f", "-", input=manifest)
    machine = next(each for each in objects if each["kind"] == "Machine")
    name = machine["metadata"]["name"]

    def version() -> str:
        live = stage.machine(name)
        assert live is not None
        return str(live["metadata"]["resourceVersion"])

    try:
        for _ in ("before", "after"):
            assert difference_by_kubectl(stage.bed.plane, how, manifest, version) == ""
            live = stage.machine(name)
            assert live is not None
            assert list(differences(machine["spec"], live["spec"])) == []
            if file.name[:2] in RUNNING:
                stage.until_running(name)
            else:
                stage.until(name, lambda obj: obj.get("status"))
    finally:
        for each in objects:
            if each["kind"] == "MachineClass":
                stage.bed.delete("machineclasses", each["metadata"]["name"], "")


def health(obj: Object) -> tuple[str, str]:
    """Ask what Argo CD asks; it has Lua 5.1."""
    runtime = lupa.lua51.LuaRuntime()
    runtime.globals().obj = runtime.table_from(obj, recursive=True)
    kind = f"{obj['apiVersion'].partition('/')[0]}_{obj['kind']}"
    told = runtime.execute(CUSTOMIZATIONS[f"resource.customizations.health.{kind}"])
    return told.status, told.message


def test_a_machine_that_is_as_declared_is_healthy(stage: MachineStage) -> None:
    created = stage.declare("vm")
    assert health(created) == ("Progressing", "waiting for the operator")
    assert health(stage.until_running("vm"))[0] == "Healthy"
    changed = stage.change("vm", running=False)
    assert health(changed) == ("Progressing", "waiting for the operator")
    stopped = stage.until("vm", lambda obj: obj["status"].get("phase") == "Stopped")
    assert health(stopped)[0] == "Healthy"


def test_a_machine_that_waits_is_progressing_and_one_that_needs_another_spec_is_degraded(
    stage: MachineStage,
) -> None:
    stage.declare("waits", networks=[{"name": "eth0", "networkName": "none"}])
    waits = stage.until_told("waits", "Ready", "False", "NetworkConfigurationNotFound")
    assert health(waits)[0] == "Progressing"
    stage.declare("wrong", template="gigantic")
    wrong = stage.until_told("wrong", "Ready", "False", "TemplateNotFound")
    assert health(wrong)[0] == "Degraded"
    assert "gigantic" in health(wrong)[1]


def test_a_network_is_healthy_when_machines_can_be_on_it(stage: MachineStage) -> None:
    assert health(stage.network("lan", vlan=7))[0] == "Progressing"

    def told(name: str) -> Object:
        found: Object = stage.bed.wait(
            name, lambda: (o := stage.bed.get("networkconfigurations", name)) and o.get("status")
        )
        assert found
        obj = stage.bed.get("networkconfigurations", name)
        assert obj is not None
        return obj

    assert health(told("lan"))[0] == "Healthy"
    stage.network("void")
    assert health(told("void"))[0] == "Degraded"
