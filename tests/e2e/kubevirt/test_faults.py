"""What goes wrong around Machines: each is said with its remedy, and is over when its cause is.

All on a real KubeVirt that is well itself; what happens when it is not is in another file.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from api import Refused
from e2e.kubevirt.machines import MachineStage, condition, staged
from kubevirt_bed import FAIL, HOLD, KubeVirtBed, claim, fresh_namespace, virtual_machine

Object = dict[str, Any]

UID = "novacron.io/machine-uid"


@pytest.fixture(scope="module")
def stage(
    viti_cluster: KubeVirtBed, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MachineStage]:
    """One namespace and one operator for all tests here: each has Machines of its own name."""
    with (
        fresh_namespace(viti_cluster) as bed,
        staged(bed, tmp_path_factory.mktemp("faults")) as there,
    ):
        yield there


def phase(obj: Object) -> str | None:
    """Return the phase of a Machine."""
    found: str | None = (obj.get("status") or {}).get("phase")
    return found


def ready(obj: Object) -> tuple[str | None, str | None]:
    """Return whether a Machine is ready, and why not."""
    claim = condition(obj, "Ready")
    return claim.get("status"), claim.get("reason")


def storage_class(stage: MachineStage, name: str, **changes: Any) -> str:
    """Create a class of a name that no other run uses."""
    unique = f"{name}-{stage.bed.namespace}"
    body = {
        "metadata": {"name": unique, "annotations": changes.pop("annotations", {})},
        "provisioner": "stand-in.novacron.io",
        **changes,
    }
    stage.bed.create("storageclasses", body, "")
    return unique


def instance_uid(stage: MachineStage, name: str) -> str:
    """Return which instance of a Machine runs."""
    found = stage.bed.get("virtualmachineinstances", name)
    assert found is not None
    uid: str = found["metadata"]["uid"]
    return uid


@pytest.mark.full
def test_a_claim_that_waits_for_ever_is_named_with_what_to_look_at(stage: MachineStage) -> None:
    slow = storage_class(stage, "slow", annotations={HOLD: "true"})
    stage.declare("unbound", disks=[{"name": "root", "storageClass": slow}])
    said = stage.until_told("unbound", "Ready", "False", "PVCPending")
    assert phase(said) == "Creating"
    storage = condition(said, "StorageReady")
    assert (storage["status"], storage["reason"]) == ("False", "PVCPending")
    assert "unbound-root" in storage["message"]
    message = said["status"]["message"]
    assert "unbound-root" in message
    assert "kubectl describe pvc" in message
    assert slow in message
    stage.bed.annotate("storageclasses", slow, HOLD, None, "")
    assert condition(stage.until_running("unbound"), "StorageReady")["reason"] == "PVCBound"


def test_a_storage_class_that_is_missing_is_awaited(stage: MachineStage) -> None:
    name = f"fancy-{stage.bed.namespace}"
    stage.declare("classy", disks=[{"name": "root", "storageClass": name}])
    said = stage.until_told("classy", "Ready", "False", "StorageClassNotFound")
    assert phase(said) == "Pending"
    storage = condition(said, "StorageReady")
    assert (storage["status"], storage["reason"]) == ("False", "PVCPending")
    assert name in said["status"]["message"]
    assert "it has: fast-ssd, " in said["status"]["message"], "what there is instead"
    storage_class(stage, "fancy")
    stage.until_running("classy")


def test_a_network_that_is_missing_is_awaited(stage: MachineStage) -> None:
    stage.declare("offline", networks=[{"name": "eth0", "networkName": "late-network"}])
    said = stage.until_told("offline", "Ready", "False", "NetworkConfigurationNotFound")
    assert phase(said) == "Pending"
    network = condition(said, "NetworkReady")
    assert (network["status"], network["reason"]) == ("False", "NetworkFailed")
    assert "late-network" in network["message"]
    assert "create it" in network["message"]
    stage.network("late-network", vlan=7)
    running = stage.until_running("offline")
    assert condition(running, "NetworkReady")["reason"] == "NetworkConfigured"


@pytest.mark.full
def test_a_network_that_goes_and_comes_back_costs_the_machine_nothing(stage: MachineStage) -> None:
    """What Multus needs went with it, and the next start would fail without."""
    definitions = "network-attachment-definitions"
    stage.network("brief-network", vlan=8)
    stage.declare("rooted", networks=[{"name": "eth0", "networkName": "brief-network"}])
    stage.until_running("rooted")
    before = instance_uid(stage, "rooted")
    stage.bed.delete("networkconfigurations", "brief-network")
    said = stage.until_told("rooted", "Ready", "False", "NetworkConfigurationNotFound")
    assert phase(said) == "Running"
    assert condition(said, "NetworkReady")["reason"] == "NetworkFailed"
    gone = lambda: stage.bed.get(definitions, "brief-network") is None  # noqa: E731
    stage.bed.wait("the attachment stayed", gone)
    stage.network("brief-network", vlan=8)
    stage.until_running("rooted")
    assert stage.bed.get(definitions, "brief-network") is not None
    assert condition(stage.until_running("rooted"), "NetworkReady")["status"] == "True"
    assert instance_uid(stage, "rooted") == before


def test_a_template_that_nobody_knows_fails_until_somebody_makes_it(stage: MachineStage) -> None:
    name = f"huge-{stage.bed.namespace}"
    stage.declare("unsized", template=name)
    said = stage.until_told("unsized", "Ready", "False", "TemplateNotFound")
    assert phase(said) == "Failed"
    assert said["status"]["failureReason"] == "TemplateNotFound"
    assert f"no template {name}" in said["status"]["failureMessage"]
    assert "small, medium or large" in said["status"]["failureMessage"]
    body = {
        "apiVersion": "vitistack.io/v1alpha1",
        "kind": "MachineClass",
        "metadata": {"name": name},
        "spec": {"cpu": {"cores": 2}, "memory": {"quantity": "3Gi"}},
    }
    stage.bed.create("machineclasses", body, "")
    running = stage.until_running("unsized")
    assert running["status"].get("failureReason") is None
    stage.bed.delete("machineclasses", name, "")


@pytest.mark.full
def test_a_guest_that_fails_is_told_of_until_it_runs(stage: MachineStage) -> None:
    stage.declare("crasher", running=False)
    stage.until("crasher", lambda obj: phase(obj) == "Stopped")
    note = {"metadata": {"annotations": {FAIL: "no kernel found"}}}
    stage.bed.patch("virtualmachines", "crasher", {"spec": {"template": note}})
    stage.change("crasher", running=True)
    said = stage.until_told("crasher", "Ready", "False", "VMFailed")
    assert "no kernel found" in said["status"]["message"], "also between two tries"
    assert phase(said) == "Creating"
    assert condition(said, "VirtualMachineReady")["reason"] == "VMFailed"
    assert "console" in said["status"]["message"]
    well = {"metadata": {"annotations": {FAIL: None}}}
    stage.bed.patch("virtualmachines", "crasher", {"spec": {"template": well}})
    running = stage.until_running("crasher")
    assert condition(running, "VirtualMachineReady")["reason"] == "VMCreated"


@pytest.mark.full
def test_a_machine_that_no_node_has_room_for_waits_for_room(stage: MachineStage) -> None:
    stage.declare("giant", resources={"memory": {"size": "9Ti"}})
    said = stage.until_told("giant", "Ready", "False", "InsufficientResources")
    assert phase(said) == "Creating"
    assert "Insufficient memory" in said["status"]["message"], "the scheduler's own words"
    assert "add nodes or ask for less" in said["status"]["message"]
    stage.change("giant", resources={"memory": {"size": "2Gi"}})
    stage.until_running("giant")


@pytest.mark.full
def test_a_quota_is_told_from_a_lack_of_rights(stage: MachineStage) -> None:
    hard = {"persistentvolumeclaims": "0"}
    with fresh_namespace(stage.bed) as bed:
        bed.create("resourcequotas", {"metadata": {"name": "none"}, "spec": {"hard": hard}})
        bed.wait(
            "the quota is not in force",
            lambda: (bed.get("resourcequotas", "none") or {}).get("status", {}).get("hard"),
        )
        with staged(bed, stage.operator.directory, name="quota") as there:
            there.declare("poor")
            said = there.until_told("poor", "Ready", "False", "InsufficientResources")
            assert phase(said) == "Pending"
            assert "ResourceQuota" in said["status"]["message"]
            bed.delete("resourcequotas", "none")
            there.until_running("poor")


def test_what_somebody_changes_about_the_virtual_machine_is_repaired(stage: MachineStage) -> None:
    stage.declare("edited", disks=[{"name": "root", "accessMode": "ReadWriteMany"}])
    stage.until_running("edited")
    domain = {"memory": {"guest": "3Gi"}}
    patch = {
        "metadata": {"labels": {"vitistack.io/machine": "somebody"}},
        "spec": {"template": {"spec": {"domain": domain}}},
    }
    stage.bed.patch("virtualmachines", "edited", patch)

    def repaired() -> bool:
        found = stage.bed.get("virtualmachines", "edited")
        assert found is not None
        guest = found["spec"]["template"]["spec"]["domain"]["memory"]["guest"]
        return (guest, found["metadata"]["labels"]["vitistack.io/machine"]) == ("2Gi", "edited")

    stage.bed.wait("it was not repaired", repaired)
    stage.until_running("edited")


@pytest.mark.full
def test_a_virtual_machine_without_our_labels_is_still_ours(stage: MachineStage) -> None:
    """They are how we hear of it, so whoever takes them off makes it look deleted."""
    stage.declare("bare")
    stage.until_running("bare")
    before = instance_uid(stage, "bare")
    none = dict.fromkeys((UID, "vitistack.io/machine", "vitistack.io/managed-by"))
    stage.bed.patch("virtualmachines", "bare", {"metadata": {"labels": none}})

    def labelled() -> bool:
        found = stage.bed.get("virtualmachines", "bare")
        return found is not None and set(none) <= set(found["metadata"].get("labels") or {})

    stage.bed.wait("it has no labels", labelled)
    stage.until_running("bare")
    assert instance_uid(stage, "bare") == before


def test_a_virtual_machine_that_somebody_deletes_is_made_again(stage: MachineStage) -> None:
    stage.declare("phoenix")
    stage.until_running("phoenix")
    before = instance_uid(stage, "phoenix")
    disk = stage.bed.get("persistentvolumeclaims", "phoenix-root")
    stage.bed.delete("virtualmachines", "phoenix")

    def again() -> bool:
        found = stage.bed.get("virtualmachineinstances", "phoenix")
        return found is not None and found["metadata"]["uid"] != before

    stage.bed.wait("it was not made again", again)
    stage.until_running("phoenix")
    kept = stage.bed.get("persistentvolumeclaims", "phoenix-root")
    assert disk is not None
    assert kept is not None
    assert kept["metadata"]["uid"] == disk["metadata"]["uid"], "with the disk it had"


@pytest.mark.full
def test_a_claim_that_somebody_deletes_is_told_of_while_it_can_be_saved(
    stage: MachineStage,
) -> None:
    """Kubernetes keeps it for as long as the guest runs; then it is gone and made again, empty."""
    stage.declare("diskless")
    stage.until_running("diskless")
    old = stage.bed.get("persistentvolumeclaims", "diskless-root")
    assert old is not None
    stage.bed.delete("persistentvolumeclaims", "diskless-root")
    said = stage.until_told("diskless", "StorageReady", "False", "PVCPending")
    assert phase(said) == "Running"
    message = condition(said, "StorageReady")["message"]
    assert "diskless-root" in message
    assert "save what is needed" in message
    stage.change("diskless", running=False)

    def replaced() -> bool:
        found = stage.bed.get("persistentvolumeclaims", "diskless-root")
        return found is not None and found["metadata"]["uid"] != old["metadata"]["uid"]

    stage.bed.wait("it was not made again", replaced)
    stage.change("diskless", running=True)
    assert condition(stage.until_running("diskless"), "StorageReady")["reason"] == "PVCBound"


@pytest.mark.full
def test_labels_of_a_machine_are_its_owners(stage: MachineStage) -> None:
    """Nothing is found by them, so nothing is lost or restarted when they change."""
    stage.declare("relabelled")
    stage.until_running("relabelled")
    before = instance_uid(stage, "relabelled")
    for labels in ({"vitistack.io/machine": "another"}, {"vitistack.io/machine": None, "a": "b"}):
        stage.bed.patch("machines", "relabelled", {"metadata": {"labels": labels}})
    stage.change("relabelled", running=True)
    stage.until_running("relabelled")
    assert instance_uid(stage, "relabelled") == before
    vm = stage.bed.get("virtualmachines", "relabelled")
    assert vm is not None
    assert vm["metadata"]["labels"]["vitistack.io/machine"] == "relabelled"
    stage.bed.delete("machines", "relabelled")
    stage.until_gone("relabelled")
    assert stage.bed.get("virtualmachines", "relabelled") is None


@pytest.mark.parametrize("moment", ["claims wait", "guest waits", "class is missing"])
def test_a_machine_that_is_deleted_while_it_is_made_leaves_nothing(
    stage: MachineStage, moment: str
) -> None:
    name = f"aborted-{moment.partition(' ')[0]}"
    held = storage_class(stage, f"held-{name}", annotations={HOLD: "true"})
    chosen = {"claims wait": held, "guest waits": "standard", "class is missing": "no-such-class"}
    disks = [{"name": "root"}, {"name": "data", "size": "1Gi", "storageClass": chosen[moment]}]
    spec = {"disks": disks, "cloudInit": {"userData": "#cloud-config\n"}}
    uid = stage.declare(name, **spec)["metadata"]["uid"]
    reached = {
        "claims wait": lambda: stage.bed.awaits_claims(name),
        "guest waits": lambda: stage.bed.get("virtualmachines", name),
        "class is missing": lambda: stage.bed.get("persistentvolumeclaims", f"{name}-root"),
    }
    stage.bed.wait(moment, reached[moment])
    stage.bed.delete("machines", name)
    stage.until_gone(name)
    for plural in ("virtualmachines", "virtualmachineinstances", "persistentvolumeclaims"):
        empty = lambda plural=plural: stage.bed.items(plural, f"{UID}={uid}") == []  # noqa: E731
        stage.bed.wait(f"{plural} are left", empty)
    stage.bed.wait("its Secret is left", lambda: not stage.bed.items("secrets", f"{UID}={uid}"))


@pytest.mark.parametrize(
    ("plural", "name", "part"),
    [
        ("virtualmachines", "taken-vm", "VirtualMachineReady"),
        ("persistentvolumeclaims", "taken-pvc-root", "StorageReady"),
        ("secrets", "taken-secret-cloud-init", "VirtualMachineReady"),
    ],
)
def test_what_somebody_else_has_under_a_needed_name_is_never_touched(
    stage: MachineStage, plural: str, name: str, part: str
) -> None:
    bodies = {
        "virtualmachines": virtual_machine(name, runStrategy="Halted"),
        "persistentvolumeclaims": claim(name),
        "secrets": {"metadata": {"name": name}, "stringData": {"userdata": "theirs"}},
    }
    theirs = stage.bed.create(plural, bodies[plural])
    machine = "-".join(name.split("-")[:2])
    stage.declare(machine, cloudInit={"userData": "#cloud-config\n"})
    said = stage.until_told(machine, "Ready", "False", "NameTaken")
    assert phase(said) == "Pending"
    assert condition(said, part)["status"] == "False"
    assert name in said["status"]["message"]
    found = stage.bed.get(plural, name)
    assert found is not None
    assert found["metadata"].get("labels") == theirs["metadata"].get("labels")
    assert (found.get("spec"), found.get("data")) == (
        (theirs.get("spec"), theirs.get("data"))
        if plural != "persistentvolumeclaims"
        else (found["spec"], None)
    )
    stage.bed.delete(plural, name)
    stage.until_running(machine)
    stage.bed.delete("machines", machine)
    stage.until_gone(machine)


@pytest.mark.full
def test_a_machine_that_is_deleted_leaves_what_was_somebody_elses(stage: MachineStage) -> None:
    stage.bed.create("virtualmachines", virtual_machine("theirs", runStrategy="Halted"))
    stage.declare("theirs")
    stage.until_told("theirs", "Ready", "False", "NameTaken")
    stage.bed.delete("machines", "theirs")
    stage.until_gone("theirs")
    assert stage.bed.get("virtualmachines", "theirs") is not None


@pytest.mark.full
def test_a_secret_with_user_data_that_is_missing_is_awaited(stage: MachineStage) -> None:
    secret = {"name": "late-secret", "key": "userdata"}
    stage.declare("untold", cloudInit={"userData": "#cloud-config\n", "secretRef": secret})
    said = stage.until_told("untold", "Ready", "False", "CloudInitSourceNotFound")
    assert phase(said) == "Pending"
    assert "key userdata of Secret late-secret" in said["status"]["message"]
    assert "create it" in said["status"]["message"]
    content = {"userdata": "#cloud-config\npackages: [vim]\n"}
    stage.bed.create("secrets", {"metadata": {"name": "late-secret"}, "stringData": content})
    stage.until_running("untold")
    assert stage.bed.get("secrets", "untold-cloud-init") is not None


def test_user_data_of_more_than_2048_bytes_reaches_the_guest(stage: MachineStage) -> None:
    """KubeVirt takes no more than that in the object itself."""
    stage.declare("talkative", cloudInit={"userData": "#cloud-config\n# " + "x" * 5000})
    stage.until_running("talkative")
    vm = stage.bed.get("virtualmachines", "talkative")
    assert vm is not None
    assert "xxx" not in str(vm)
    secret = stage.bed.get("secrets", "talkative-cloud-init")
    assert secret is not None
    assert len(secret["data"]["userdata"]) > 5000


def test_nothing_that_was_said_here_is_for_programmers(stage: MachineStage) -> None:
    """Whatever the tests above had the operator say of its Machines."""
    try:
        events = stage.bed.api.call("GET", stage.bed.path("events"))["items"]
    except Refused as refused:
        raise AssertionError(str(refused)) from refused
    said = [
        each["message"] for each in events if each["source"].get("component", "")[:8] == "novacron"
    ]
    machines = stage.bed.items("machines")
    said += [claim["message"] for obj in machines for claim in obj["status"]["conditions"]]
    for message in said:
        for word in ("Traceback", "<class", "Exception", "None", "{'", "object at 0x"):
            assert word not in message
    assert "Traceback" not in stage.operator.log
