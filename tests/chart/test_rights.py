"""The operator has the rights it uses and no others, and the tests run it under these."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

import declared
from api import Api, Refused
from chart.audit import Audit, Right, rights_in
from chart.conftest import Render
from helm import CHART, Helm
from machines import condition, host, virtual_machine
from novacron.app.definitions import crds
from novacron.app.registry import FAMILIES
from novacron.app.rights import CERTIFICATES, OPERATOR, rbac
from novacron.localcluster.controlplane import ControlPlane
from operators import RunningOperator, eventually
from service_accounts import kubeconfig_of

Object = dict[str, Any]

OWN = "novacron-system"
VMS = "machines"
ALL_ON = [f"families.{name}=true" for name in FAMILIES]
# Asked for only when an answer was lost on the way, which a test cannot order.
RARE = {
    Right("get", "coordination.k8s.io", "leases"),
    Right("get", "novacron.io", "virtualmachines"),
}
# Simulated hosts have no images; tests/e2e/libvirt/test_images.py needs every one of these.
FOR_IMAGES = {
    Right("get", "", "configmaps"),
    Right("get", "", "persistentvolumeclaims"),
    Right("get", "", "persistentvolumes"),
}


def roles(manifests: list[Object]) -> dict[tuple[str, str, str], list[Object]]:
    """Return the rules of every role by its kind, namespace and name."""
    return {
        (each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): each[
            "rules"
        ]
        for each in manifests
        if each["kind"] in ("Role", "ClusterRole")
    }


def test_the_chart_gives_exactly_the_rights_that_the_tests_run_operators_under(
    render: Render,
) -> None:
    """Whatever the suite needs is in the chart's role, and what it does not need is not."""
    assert roles(render(*ALL_ON, hooks=False)) == roles(rbac(["all"]))


def test_machines_are_out_of_reach_in_namespaces_that_are_not_watched(render: Render) -> None:
    """A team's operator has no business in another team's namespace."""
    found = roles(render(f"watchNamespaces={{{VMS}}}", hooks=False))
    everywhere = set(rights_in(found["ClusterRole", "", OPERATOR]))
    assert {right.resource for right in everywhere} == {
        "hosts",
        "hosts/status",
        "namespaces",
        "nodes",
        "persistentvolumes",
        "mutatingwebhookconfigurations",
        "validatingwebhookconfigurations",
    }
    watched = set(rights_in(found["Role", VMS, f"{OPERATOR}-machines"]))
    whole = {right for rules in roles(rbac(["novacron"])).values() for right in rights_in(rules)}
    assert everywhere | watched | set(rights_in(found["Role", OWN, OPERATOR])) == whole


def test_shared_claims_can_be_read_in_namespaces_that_are_not_watched(render: Render) -> None:
    """That is where images for all teams are; nothing else there is the operator's business."""
    shared = "images.sharedNamespaces={golden}"
    name, watched = f"{OPERATOR}-claims", f"watchNamespaces={{{VMS}}}"
    manifests = render(watched, shared, hooks=False)
    rights = set(rights_in(roles(manifests)["Role", "golden", name]))
    assert rights == {Right("get", "", "persistentvolumeclaims")}
    [binding] = [
        each
        for each in manifests
        if each["kind"] == "RoleBinding" and each["metadata"]["namespace"] == "golden"
    ]
    assert binding["roleRef"]["name"] == name
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": OPERATOR, "namespace": OWN},
    ]
    everywhere = roles(render(shared, hooks=False))
    others = roles(render(watched, shared, "families.novacron=false", "families.viti=true"))
    for found in (everywhere, others):
        assert ("Role", "golden", name) not in found, "they need it nowhere, or have it everywhere"


def test_a_family_that_is_off_has_no_rights(helm: Helm, tmp_path: Path) -> None:
    """Each brings its own, to its machines and to its kinds; hosts come with all of them."""
    chart = Path(shutil.copytree(CHART, tmp_path / "novacron"))
    rights = yaml.safe_load((chart / "files/rights.yaml").read_text())
    text = json.dumps(rights["families"]["novacron"])
    other = text.replace("novacron.io", "other.org").replace("hosts.other.org", "hosts.novacron.io")
    rights["families"]["other"] = json.loads(other)
    (chart / "files/rights.yaml").write_text(yaml.safe_dump(rights))
    (chart / "values.schema.json").unlink()

    def given(**families: bool) -> str:
        flags = [flag for name in families for flag in ("--set", f"families.{name}=true")]
        off = [] if "novacron" in families else ["--set", "families.novacron=false"]
        manifests = list(yaml.safe_load_all(helm.template(*flags, *off, chart=chart)))
        rules = [rule for each in roles(manifests).values() for rule in each]
        # One role for the kinds names each of them once, however many families bring it.
        assert len(rules) == len({json.dumps(rule) for rule in rules})
        return json.dumps(rules)

    only, both = given(other=True), given(novacron=True, other=True)
    assert "virtualmachines.other.org" in only
    assert '["other.org"]' in only
    assert "virtualmachines.novacron.io" not in only
    assert "hosts.novacron.io" in only
    for group in ("novacron.io", "other.org"):
        assert f'["{group}"]' in both
        assert f"virtualmachines.{group}" in both


@dataclass(slots=True)
class Audited:
    """A cluster that remembers what the operator asked of it."""

    plane: ControlPlane
    audit: Audit
    api: Api
    directory: Path

    def live(self, manifests: list[Object]) -> None:
        """Install what the chart renders to, and have an operator do all that it does.

        It runs as the service account that the chart made.
        """
        text = yaml.safe_dump_all(manifests)
        self.plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=text)
        operator = self._operator()
        try:
            live_a_life(self, operator.start())
        finally:
            operator.kill()

    def _operator(self) -> RunningOperator:
        return RunningOperator(
            self.plane,
            self.directory,
            [VMS],
            flags=("--leader-elect",),
            webhooks=True,
            kubeconfig=kubeconfig_of(self.plane, OWN, OPERATOR),
        )

    def until(self, claim: Callable[[Object], bool], operator: RunningOperator) -> None:
        """Wait until a claim holds of the machine."""
        eventually(lambda: claim(self.api.machine(VMS, "vm") or {}), lambda: operator.log)


@pytest.fixture
def audited(new_control_plane: Callable[..., ControlPlane], tmp_path: Path) -> Iterator[Audited]:
    """An API server of the test's own, with an audit log about the operator."""
    audit = Audit(tmp_path, f"system:serviceaccount:{OWN}:{OPERATOR}")
    plane = new_control_plane(extra_flags={"kube-apiserver": audit.flags})
    for definition in crds(["all"]):
        declared.install(plane, yaml.safe_dump(definition), definition["metadata"]["name"])
    api = Api(plane.kubeconfig)
    for namespace in (OWN, VMS):
        api.create_namespace(namespace)
    api.call("POST", "/api/v1/nodes", {"metadata": {"name": "node"}})
    # A new node is kept from use until a kubelet reports, and none does here.
    api.call("PATCH", "/api/v1/nodes/node", {"spec": {"taints": None}}, merge=True)
    yield Audited(plane, audit, api, tmp_path)
    api.close()


def live_a_life(audited: Audited, operator: RunningOperator) -> None:
    """Have the operator do all that an operator does."""
    api = audited.api
    api.create(host("host", nodeRef={"name": "node"}))
    api.create(virtual_machine("vm", VMS))
    audited.until(is_ready, operator)
    for running in (False, True):
        api.patch_machine(VMS, "vm", {"spec": {"running": running}})
        audited.until(lambda vm, running=running: is_ready(vm) == running, operator)
    eventually(lambda: is_guarded(api), lambda: operator.log)
    api.delete_machine(VMS, "vm")
    eventually(lambda: api.machine(VMS, "vm") is None, lambda: operator.log)
    eventually(lambda: is_gone(api), lambda: operator.log)
    assert operator.stop() == 0, operator.log


def is_guarded(api: Api) -> bool:
    """Say whether the API server asks the operator before a host goes.

    A leader tells it to a moment after it began to lead, and it takes its time to listen.
    """
    try:
        api.call("DELETE", "/apis/novacron.io/v1alpha1/hosts/host?dryRun=All")
    except Refused as refused:
        return "cannot go: 1 machine is on it" in str(refused)
    return False


def is_gone(api: Api) -> bool:
    """Have the host removed; its last machine may be going this moment."""
    if api.host("host") is None:
        return True
    with suppress(Refused):
        api.delete_host("host")
    return False


def is_ready(vm: Object) -> bool:
    """Say whether a machine is Ready."""
    return condition(vm, "Ready").get("status") == "True"


def test_every_right_is_used_and_nothing_is_forbidden(audited: Audited, render: Render) -> None:
    """The API server itself tells what the operator asks for.

    Of Machines it is told in tests/e2e/kubevirt/test_rights.py, where there is a KubeVirt.
    """
    manifests = render(hooks=False)
    audited.live(manifests)
    # Certificates that somebody damaged are made anew.
    patch = ("--type=merge", "--patch", '{"data": {"tls.crt": "AAAA"}}')
    audited.plane.kubectl("patch", "secret", CERTIFICATES, "--namespace", OWN, *patch)
    audited.live(manifests)

    assert audited.audit.forbidden() == []
    used = audited.audit.used()
    used |= {right._replace(name="") for right in used}
    given = {right for rules in roles(manifests).values() for right in rights_in(rules)}
    assert given - used == RARE | FOR_IMAGES


def test_an_operator_for_one_namespace_lives_with_rights_there(
    audited: Audited, render: Render
) -> None:
    """Roles in namespaces do for everything but hosts and webhooks."""
    manifests = render(*ALL_ON, f"watchNamespaces={{{VMS}}}", hooks=False)
    audited.live(manifests)
    assert audited.audit.forbidden() == []
