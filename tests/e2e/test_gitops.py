"""Machines from Git: Argo CD sees no difference where there is none, and tells their health."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lupa.lua51
import pytest
import yaml

from e2e.conftest import Stage
from gitops import difference_by_kubectl, differences
from machines import condition, virtual_machine
from novacron.core.quantity import mib
from novacron.families.novacron.template_types import MINIMUM_MEMORY

Object = dict[str, Any]

REPOSITORY = Path(__file__).parents[2]
SPECIFIED = REPOSITORY / "tests/golden/spec-000-virtualmachine.yaml"
EXAMPLES = sorted((REPOSITORY / "examples").glob("*.yaml"))
MANIFESTS = [*(each for each in EXAMPLES if "kind: VirtualMachine" in each.read_text()), SPECIFIED]
CUSTOMIZATIONS = yaml.safe_load((REPOSITORY / "deploy/argocd/argocd-cm.yaml").read_text())["data"]
# What people write when they leave out all that can be left out.
TERSE = """
apiVersion: novacron.io/v1alpha1
kind: VirtualMachine
metadata: {name: terse}
spec:
  template:
    spec:
      resources: {cpu: 1, memory: 512Mi}
      image: {source: "builtin://tiny"}
      networks: [{name: first}, {name: second, ipv4: {method: dhcp}, ipv6: {}}]
      volumes: [{name: data, size: 1Gi}]
      devices: [{type: gpu}]
      tolerations: [{operator: Exists}]
  snapshotPolicy: {schedule: "@daily"}
"""


def declared(stage: Stage, text: str) -> Object:
    """Return the machine of a manifest, in the stage's namespace, with memory that all kinds allow.

    Examples may ask for less, because ``novacron up`` installs kinds that let them. Volumes
    that they name were kept in somebody else's cluster, so that they are new ones here.
    """
    found: Object = next(
        each for each in yaml.safe_load_all(text) if each["kind"] == "VirtualMachine"
    )
    found["metadata"]["namespace"] = stage.namespace
    resources = found["spec"]["template"]["spec"]["resources"]
    if mib(resources["memory"]) < mib(MINIMUM_MEMORY):
        resources["memory"] = MINIMUM_MEMORY
    for volume in found["spec"]["template"]["spec"].get("volumes") or ():
        volume.pop("existing", None)
    return found


@pytest.mark.parametrize(
    "text",
    [*(path.read_text() for path in MANIFESTS), TERSE],
    ids=[*(path.stem for path in MANIFESTS), "terse"],
)
@pytest.mark.parametrize("how", [(), ("--server-side",)], ids=["client-side", "server-side"])
def test_what_was_applied_shows_no_difference(
    stage: Stage, text: str, how: tuple[str, ...]
) -> None:
    """Not at once, and not when the operator has done its work."""
    labels = {"node.novacron.io/type": "compute", "node.novacron.io/gpu": "true"}
    gpu = {"address": "0000:3b:00.0", "type": "gpu", "vendor": "nvidia", "model": "tesla-t4"}
    classes = [{"name": "fast-ssd"}, {"name": "nfs", "shared": True}]
    stage.add_host(labels=labels, simulation={"devices": [gpu], "storageClasses": classes})
    wanted = declared(stage, text)
    name = wanted["metadata"]["name"]
    manifest = yaml.safe_dump(wanted)
    kubectl = stage.operator.plane.kubectl
    kubectl("apply", *how, "-f", "-", input=manifest)

    def version() -> str:
        live = stage.api.machine(stage.namespace, name)
        assert live is not None
        return str(live["metadata"]["resourceVersion"])

    for _ in ("before", "after"):
        assert difference_by_kubectl(stage.operator.plane, how, manifest, version) == ""
        live = stage.api.machine(stage.namespace, name)
        assert live is not None
        assert list(differences(wanted["spec"], live["spec"])) == []
        stage.until_running(name)


def test_differences_are_found_where_argo_cd_finds_them() -> None:
    """Defaults beside what was declared are none; defaults within a list are."""
    wanted = {"a": 1, "list": [{"name": "x"}]}
    assert list(differences(wanted, {**wanted, "default": 2})) == []
    assert list(differences(wanted, {"a": 1, "list": [{"name": "x", "default": 2}]})) != []
    assert list(differences(wanted, {"list": [{"name": "x"}]})) != []


def health(obj: Object) -> tuple[str, str]:
    """Ask what Argo CD asks; it has Lua 5.1."""
    runtime = lupa.lua51.LuaRuntime()
    runtime.globals().obj = runtime.table_from(obj, recursive=True)
    told = runtime.execute(CUSTOMIZATIONS[f"resource.customizations.health.{_kind(obj)}"])
    return told.status, told.message


def _kind(obj: Object) -> str:
    return f"{obj['apiVersion'].partition('/')[0]}_{obj['kind']}"


def ready(status: str) -> Callable[[Object], bool]:
    """Return a claim about the condition Ready."""
    return lambda obj: condition(obj, "Ready").get("status") == status


def test_a_machine_that_is_as_declared_is_healthy(stage: Stage) -> None:
    """Running when it is to run, and stopped when it is not: a sync waits for neither."""
    host = stage.add_host()
    created = stage.api.create(virtual_machine("vm", stage.namespace, on=host))
    assert health(created) == ("Progressing", "waiting for the operator")
    assert health(stage.until_running("vm")) == ("Healthy", "VM is running and ready")
    changed = stage.api.patch_machine(stage.namespace, "vm", {"spec": {"running": False}})
    assert health(changed) == ("Progressing", "waiting for the operator")
    stopped = stage.until("vm", lambda obj: obj["status"].get("phase") == "Stopped")
    assert health(stopped) == ("Healthy", "VM is stopped, as asked")


def test_a_machine_that_waits_is_progressing_and_says_for_what(stage: Stage) -> None:
    """Somebody may make room, so the sync has not failed; a growth that waits is told as well."""
    host = stage.add_host(cpu=2)
    stage.api.create(virtual_machine("large", stage.namespace, cpu=4, on=host))
    told = health(stage.until("large", ready("False")))
    assert told[0] == "Progressing"
    assert "lacks CPU (4 asked, 2 free)" in told[1]
    stage.api.create(virtual_machine("grown", stage.namespace, on=host))
    stage.until_running("grown")
    more = {"spec": {"template": {"spec": {"resources": {"cpu": 8}}}}}
    stage.api.patch_machine(stage.namespace, "grown", more)
    waiting = stage.until("grown", lambda obj: condition(obj, "Placed").get("status") == "False")
    assert ready("True")(waiting)
    assert health(waiting)[0] == "Progressing"
    assert "stays as it is" in health(waiting)[1]


def test_trouble_is_degraded_with_the_host_s_own_words(stage: Stage) -> None:
    """A host that refuses a machine, and one that does not answer."""
    fault = {"operation": "create", "error": "Rejected", "message": "no such image"}
    host = stage.add_host(simulation={"faults": [fault]})
    stage.api.create(virtual_machine("refused", stage.namespace, on=host))
    failed = stage.until("refused", lambda obj: obj.get("status", {}).get("phase") == "Failed")
    assert health(failed) == ("Degraded", "no such image")
    working = stage.api.host(host)
    assert working is not None
    assert health(working) == ("Healthy", "the host answers")

    gone = {"operation": "hosts", "error": "Unreachable", "message": "no route"}
    unseen = {**gone, "operation": "observe"}
    lost = stage.add_host()
    assert health(stage.api.create(virtual_machine("lost", stage.namespace, on=lost)))
    stage.until_running("lost")
    changed = stage.api.patch_host(lost, {"spec": {"simulation": {"faults": [gone, unseen]}}})
    assert health(changed)[0] == "Progressing"
    assert health(stage.until_host(lost, ready("False"))) == ("Degraded", "no route")
    stage.api.patch_machine(stage.namespace, "lost", {"spec": {"running": False}})
    assert health(stage.until("lost", ready("Unknown")))[0] == "Degraded"
