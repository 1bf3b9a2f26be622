"""Kinds are installed and upgraded by a Job with rights to just these, and never removed."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from chart.conftest import Render
from control_plane import discard, throw_away
from novacron.app.definitions import crds
from novacron.localcluster.controlplane import ControlPlane
from novacron.localcluster.errors import LocalClusterError
from operators import eventually
from service_accounts import kubeconfig_of

Object = dict[str, Any]

OWN = "novacron-system"
MACHINES = "virtualmachines.novacron.io"
HOSTS = "hosts.novacron.io"


@pytest.fixture(scope="module")
def plane(
    tmp_path_factory: pytest.TempPathFactory, kubernetes_binaries: Path
) -> Iterator[ControlPlane]:
    """A cluster for this module, because kinds come and go in it."""
    made = throw_away(tmp_path_factory.mktemp("kinds"), kubernetes_binaries)
    try:
        made.start()
        made.kubectl("create", "namespace", OWN)
        yield made
    finally:
        discard(made)


@pytest.fixture
def bare(plane: ControlPlane) -> ControlPlane:
    """A cluster that knows nothing of us."""
    # Once kubectl itself waited for minutes, without end in sight.
    plane.kubectl("delete", "crd", "--all", "--wait=false")
    eventually(
        lambda: not plane.kubectl("get", "crd", "-o", "name"),
        lambda: plane.kubectl("get", "crd", "-o", "yaml"),
    )
    return plane


def hook(plane: ControlPlane, manifests: list[Object]) -> "subprocess.CompletedProcess[str]":
    """Do what helm and a node do: make the hook's rights, run the Job's command under them."""
    [job] = [each for each in manifests if each["kind"] == "Job"]
    rest = [each for each in manifests if is_hook(each) and each is not job]
    plane.kubectl("apply", "--server-side", "-f", "-", input=yaml.safe_dump_all(rest))
    [container] = job["spec"]["template"]["spec"]["containers"]
    account = job["spec"]["template"]["spec"]["serviceAccountName"]
    program, *arguments = container["command"] + container["args"]
    return subprocess.run(
        [Path(sys.executable).with_name(program), *arguments],
        env={**os.environ, "KUBECONFIG": str(kubeconfig_of(plane, OWN, account))},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def is_hook(manifest: Object) -> bool:
    """Say whether helm treats it as a hook."""
    return "helm.sh/hook" in manifest["metadata"].get("annotations", {})


def stored(plane: ControlPlane, name: str) -> Object:
    """Return a definition as it is."""
    found: Object = json.loads(plane.kubectl("get", "crd", name, "-o", "json"))
    return found


def schema(definition: Object) -> Object:
    """Return the schema of the first version."""
    found: Object = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


def test_the_job_installs_the_kinds_and_may_do_nothing_else(
    bare: ControlPlane, render: Render
) -> None:
    """Its rights end at our definitions: those of others it may neither change nor add to."""
    done = hook(bare, render())
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{MACHINES} installed\n{HOSTS} installed\n"
    another = stored(bare, HOSTS)
    another["metadata"] = {"name": "others.example.org"}
    another["spec"] |= {"group": "example.org", "names": {"plural": "others", "kind": "Other"}}
    del another["status"]
    account = f"--as=system:serviceaccount:{OWN}:novacron-crds"
    for how in (("create",), ("apply", "--server-side")):
        with pytest.raises(LocalClusterError, match="is forbidden"):
            bare.kubectl(*how, account, "-f", "-", input=json.dumps(another))
    with pytest.raises(LocalClusterError, match="is forbidden"):
        bare.kubectl("delete", account, "crd", HOSTS)
    bare.kubectl("create", "-f", "-", input=json.dumps(another))


def test_kinds_that_helm_or_kubectl_installed_are_upgraded_in_full(
    bare: ControlPlane, render: Render
) -> None:
    """Fields that are gone from our types must be gone from the schema, whoever put them there."""
    [old] = [each for each in crds(["all"]) if each["metadata"]["name"] == MACHINES]
    old = json.loads(json.dumps(old))
    properties = schema(old)["properties"]
    properties["spec"]["properties"]["gone"] = {"type": "string"}
    del properties["status"]["properties"]["conditions"]
    # As helm does it: a plain creation.
    bare.kubectl("create", "-f", "-", input=json.dumps(old))
    done = hook(bare, render())
    assert done.returncode == 0, done.stderr
    new = schema(stored(bare, MACHINES))["properties"]
    assert "gone" not in new["spec"]["properties"]
    assert "conditions" in new["status"]["properties"]


def test_no_tool_removes_kinds_by_itself(bare: ControlPlane, render: Render) -> None:
    """Removing a definition removes all machines; helm and Argo CD are told to keep it."""
    assert hook(bare, render()).returncode == 0
    for name in (MACHINES, HOSTS):
        notes = stored(bare, name)["metadata"]["annotations"]
        assert notes["helm.sh/resource-policy"] == "keep"
        assert notes["argocd.argoproj.io/sync-options"] == "Prune=false,Delete=false"
    kinds = {each["kind"] for each in render()}
    assert "CustomResourceDefinition" not in kinds


def test_the_least_memory_of_machines_is_part_of_the_kinds(
    bare: ControlPlane, render: Render
) -> None:
    """Small guests are for tests, and somebody has to allow them."""
    assert hook(bare, render("crdUpgrade.minimumMemory=64Mi")).returncode == 0
    assert "at least 64Mi" in json.dumps(schema(stored(bare, MACHINES)))


def test_without_the_job_nothing_of_it_is_left(render: Render) -> None:
    """Whoever installs kinds in another way grants no rights to them."""
    manifests = render("crdUpgrade.enabled=false")
    assert not any(map(is_hook, manifests))
    assert "customresourcedefinitions" not in json.dumps(manifests)
    assert manifests == render(hooks=False)
