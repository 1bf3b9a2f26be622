"""Machines that are made in another cluster than the one they are declared in.

The home cluster has no KubeVirt at all; the far one is reached by a wire that can be cut.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from api import Api
from e2e.kubevirt.far import CONFIG, FarStage, far_staged
from e2e.kubevirt.machines import condition
from far_cluster import grant
from kubevirt_bed import KubeVirtBed
from novacron.app.rights import far_kubevirt
from novacron.localcluster.controlplane import ControlPlane

EXAMPLES = Path(__file__).parents[3] / "examples"
MADE_IN = "vitistack.io/made-in"
MADE = (
    "virtualmachines",
    "virtualmachineinstances",
    "persistentvolumeclaims",
    "network-attachment-definitions",
)


@pytest.fixture
def stage(
    cluster: ControlPlane, api: Api, kubevirt: KubeVirtBed, tmp_path: Path
) -> Iterator[FarStage]:
    """A namespace that both clusters have, with an operator at home."""
    with far_staged(cluster, api, kubevirt, tmp_path) as there:
        yield there


def left(stage: FarStage) -> dict[str, list[str]]:
    """Return what the far cluster has of us by kind."""
    found = {
        plural: [each["metadata"]["name"] for each in stage.far.items(plural)] for plural in MADE
    }
    secrets = stage.far.items("secrets", "novacron.io/machine-uid")
    found["secrets"] = [each["metadata"]["name"] for each in secrets]
    return {plural: names for plural, names in found.items() if names}


def test_a_machine_lives_and_dies_in_another_cluster(stage: FarStage) -> None:
    stage.in_reach()
    stage.network("lan", vlan=7, bridge="br1")
    stage.place(
        "away",
        networks=[{"name": "eth0", "networkName": "lan"}],
        cloudInit={"userData": "#cloud-config\n"},
    )
    obj = stage.until_running("away")
    assert obj["status"]["nodeName"].startswith("kubevirt-")
    assert obj["status"]["provider"].startswith("kubevirt://far#")
    for plural in MADE:
        for each in stage.far.items(plural):
            owners = [owner["kind"] for owner in each["metadata"].get("ownerReferences") or ()]
            assert "Machine" not in owners, each["metadata"]
            assert "NetworkConfiguration" not in owners, each["metadata"]
    assert left(stage).keys() >= {*MADE, "secrets"}
    stage.bed.delete("machines", "away")
    stage.until_gone("away")
    stage.far.wait("something is left", lambda: not left(stage))
    assert stage.token() not in stage.operator.log


@pytest.mark.full
def test_an_attachment_that_another_machine_uses_stays(stage: FarStage) -> None:
    stage.in_reach()
    stage.network("lan", vlan=7)
    nics = [{"name": "eth0", "networkName": "lan"}]
    for name in ("stays", "goes"):
        stage.place(name, networks=nics)
    for name in ("stays", "goes"):
        stage.until_running(name)
    stage.bed.delete("machines", "goes")
    stage.until_gone("goes")
    assert left(stage)["network-attachment-definitions"] == ["lan"]


@pytest.mark.full
def test_a_machine_stays_where_it_was_made_whatever_it_asks_for_later(stage: FarStage) -> None:
    stage.in_reach()
    stage.keep("other", kubeconfig=stage.kubeconfig())
    stage.apply_file(EXAMPLES / "57-machine-far-cluster.yaml")
    stage.until_running("away")
    uid = stage.far.get("virtualmachines", "away")["metadata"]["uid"]
    stage.bed.annotate("machines", "away", CONFIG, "other")
    obj = stage.until_told("away", "StaysInCluster", "True", "MadeElsewhere")
    assert "the cluster of Secret far" in condition(obj, "StaysInCluster")["message"]
    assert obj["status"]["phase"] == "Running"
    assert stage.far.get("virtualmachines", "away")["metadata"]["uid"] == uid
    stage.bed.annotate("machines", "away", CONFIG, "far")
    stage.until("away", lambda found: not condition(found, "StaysInCluster"))


@pytest.mark.full
def test_a_machine_whose_secret_is_wrong_says_so_and_holds_on_to_nothing(
    stage: FarStage,
) -> None:
    """It was never begun, so it may still go elsewhere, or go away at once."""
    stage.place("lost", config="typo")
    obj = stage.until_told("lost", "Ready", "Unknown", "KubeVirtApiError")
    assert "there is no Secret typo" in obj["status"]["message"]
    assert not obj["metadata"].get("finalizers")
    assert obj["status"]["phase"] == "Pending"
    stage.keep("empty", something="else")
    stage.place("bare", config="empty")
    obj = stage.until("bare", lambda found: "has no entry kubeconfig" in told(found))
    stage.keep("broken", kubeconfig="password: hunter2\nusers: 7")
    stage.place("garbled", config="broken")
    obj = stage.until("garbled", lambda found: "is not a kubeconfig" in told(found))
    stage.keep("program", kubeconfig=stage.kubeconfig().replace('"token"', '"tokenFile"'))
    stage.place("curious", config="program")
    obj = stage.until("curious", lambda found: "tokenFile names something" in told(found))
    assert "hunter2" not in stage.operator.log + str(stage.machine("garbled"))
    stage.bed.delete("machines", "garbled")
    assert stage.machine("garbled") is None
    stage.in_reach()
    stage.bed.annotate("machines", "lost", CONFIG, "far")
    stage.until_running("lost")


def told(obj: dict) -> str:
    """Return why a Machine is not Ready."""
    return (obj.get("status") or {}).get("message") or ""


def test_a_name_that_can_be_no_secret_is_refused(stage: FarStage) -> None:
    stage.place("sly", config="kube-system/admin")
    obj = stage.until("sly", lambda found: found.get("status"))
    assert condition(obj, "Ready")["reason"] == "ClusterUnknown"


@pytest.mark.full
def test_the_namespace_has_to_be_in_the_far_cluster_too(stage: FarStage) -> None:
    home = f"only-{stage.bed.namespace}"
    stage.bed.api.create_namespace(home)
    stage.operator.stop()
    stage.operator.namespaces = [home]
    stage.operator.start()
    inside = FarStage(
        type(stage.bed)(stage.bed.kubevirt, stage.bed.api, home, home=stage.bed.plane),
        stage.operator,
        stage.far,
        stage.wire,
    ).in_reach()
    inside.place("homeless")
    obj = inside.until_told("homeless", "Ready", "False", "NamespaceNotFound")
    assert f"create namespace {home}" in obj["status"]["message"]
    inside.bed.delete("machines", "homeless")
    inside.until_gone("homeless")


@pytest.mark.full
def test_a_cluster_that_is_down_concerns_its_own_machines_only(stage: FarStage) -> None:
    """They are cleaned up when it is back, and not forgotten before."""
    stage.in_reach()
    stage.place("down")
    stage.until_running("down")
    stage.place("doomed")
    stage.until_running("doomed")
    stage.wire.cut()
    obj = stage.until_told("down", "Ready", "Unknown", "KubeVirtApiError")
    assert "no answer from the API server" in obj["status"]["message"]
    stage.bed.delete("machines", "doomed")
    obj = stage.until("doomed", lambda found: "no answer" in told(found))
    assert obj["metadata"]["finalizers"]
    # The operator's own cluster is as it was: it says at once what it lacks.
    stage.declare("near")
    stage.until("near", lambda found: "install KubeVirt" in told(found))
    stage.wire.mend()
    stage.until_gone("doomed")
    stage.until_running("down")
    stage.far.wait("it is not gone", lambda: stage.far.get("virtualmachines", "doomed") is None)


@pytest.mark.full
def test_a_cluster_that_is_gone_for_good_is_left_on_purpose_only(stage: FarStage) -> None:
    stage.in_reach()
    stage.place("orphan")
    stage.until_running("orphan")
    stage.wire.cut()
    stage.bed.delete("machines", "orphan")
    stage.until("orphan", lambda found: "no answer" in told(found))
    stage.bed.annotate("machines", "orphan", "vitistack.io/abandon", "true")
    stage.until_gone("orphan")
    events = stage.bed.api.events(stage.bed.namespace, "orphan")
    assert "was not removed" in next(e["message"] for e in events if e["reason"] == "Abandoned")
    assert stage.far.get("virtualmachines", "orphan") is not None
    stage.wire.mend()
    stage.far.delete("virtualmachines", "orphan")


@pytest.mark.full
def test_credentials_that_were_replaced_are_taken_up(stage: FarStage) -> None:
    """The far cluster refuses the old ones from one moment to the next."""
    stage.in_reach()
    stage.place("before")
    stage.until_running("before")
    old = stage.token()
    assert not is_refused(stage, old)
    grant(stage.far, "second")
    stage.far.delete("serviceaccounts", "novacron")
    stage.far.wait("the old ones are good", lambda: is_refused(stage, old))
    stage.keep("far", kubeconfig=stage.kubeconfig("second"))
    stage.change("before", running=False)
    stage.until("before", lambda obj: obj["status"]["phase"] == "Stopped")


def is_refused(stage: FarStage, token: str) -> bool:
    """Say whether the far cluster does not know somebody any more."""
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": token},
    }
    told = stage.far.api.call("POST", "/apis/authentication.k8s.io/v1/tokenreviews", body)
    return not told["status"].get("authenticated")


@pytest.mark.full
def test_a_secret_that_comes_to_lead_elsewhere_moves_nobody(stage: FarStage) -> None:
    """Otherwise a second machine would be made, and the first one forgotten.

    That it leads elsewhere and that the Machine was made elsewhere look the same.
    """
    stage.in_reach()
    stage.place("loyal")
    obj = stage.until_running("loyal")
    note = json.loads(obj["metadata"]["annotations"][MADE_IN])
    elsewhere = json.dumps({**note, "cluster": "another"})
    stage.bed.annotate("machines", "loyal", MADE_IN, elsewhere)
    stage.until("loyal", lambda found: "leads to another one" in told(found))
    stage.bed.delete("machines", "loyal")
    stage.change("loyal", running=False)
    obj = stage.until("loyal", lambda found: found["status"]["observedGeneration"] == 3)
    assert obj["metadata"]["finalizers"]
    assert stage.far.get("virtualmachines", "loyal") is not None
    stage.bed.annotate("machines", "loyal", MADE_IN, json.dumps(note))
    stage.until_gone("loyal")
    stage.far.wait("it is not gone", lambda: not left(stage))


@pytest.mark.full
def test_a_record_that_was_copied_from_another_machine_says_nothing(stage: FarStage) -> None:
    """Whoever copies a Machine copies its annotations, and may write what they like."""
    stage.in_reach()
    note = json.dumps({"machine": "another", "secret": "elsewhere", "cluster": "another"})
    stage.place("copy")
    stage.bed.annotate("machines", "copy", MADE_IN, note)
    stage.until_running("copy")


def test_the_example_of_a_role_gives_what_the_tests_run_under() -> None:
    (role,) = yaml.safe_load_all((EXAMPLES / "58-far-cluster-role.yaml").read_text())
    assert role["rules"] == far_kubevirt()
