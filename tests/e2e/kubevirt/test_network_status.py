"""What a NetworkConfiguration says of itself: whether machines can be on it, and which are."""

from typing import Any

import pytest

from e2e.kubevirt.machines import MachineStage, condition
from e2e.kubevirt.many import cost_of

pytestmark = pytest.mark.full

Object = dict[str, Any]
ON_LAN = [{"name": "eth0", "networkName": "lan"}]


def told(stage: MachineStage, name: str) -> Object:
    """Return what a network says, as far as it is about its present spec."""
    found = stage.bed.get("networkconfigurations", name) or {}
    status: Object = found.get("status") or {}
    return found if status.get("observedGeneration") == found["metadata"]["generation"] else {}


def until_used_by(stage: MachineStage, name: str, *machines: str) -> Object:
    """Wait until a network names exactly these machines."""

    def look() -> Object | None:
        found = told(stage, name)
        return found if found and found["status"].get("machines", []) == [*machines] else None

    found: Object = stage.bed.wait(f"{name} does not name {machines}", look)
    return found


def test_a_network_names_the_machines_that_are_on_it_until_they_are_gone(
    stage: MachineStage,
) -> None:
    stage.network("lan", vlan=7)
    alone = until_used_by(stage, "lan")["status"]
    assert (alone["phase"], alone["networkAttachmentDefinition"]) == ("Ready", "lan")
    for name in ("beta", "alpha"):
        stage.declare(name, networks=ON_LAN)
    found = until_used_by(stage, "lan", "alpha", "beta")
    ready = condition(found, "NetworkReady")
    assert (ready["status"], ready["reason"]) == ("True", "NetworkConfigured")
    assert "bridge br0 of their nodes in VLAN 7" in ready["message"]
    for name in ("alpha", "beta"):
        stage.until_running(name)
    before = cost_of(stage)
    stage.operator.stop()
    stage.operator.start()
    until_used_by(stage, "lan", "alpha", "beta")
    assert (before.writes > 0, cost_of(stage).writes) == (True, 0)
    stage.bed.delete("machines", "beta")
    until_used_by(stage, "lan", "alpha")
    stage.change("alpha", networks=[{"name": "eth0"}])
    until_used_by(stage, "lan")


def test_a_network_that_leads_nowhere_says_what_is_missing(stage: MachineStage) -> None:
    stage.network("void")
    found = until_used_by(stage, "void")
    assert found["status"]["phase"] == "Failed"
    assert condition(found, "NetworkReady")["reason"] == "NetworkFailed"
    assert "neither vlan nor bridge" in found["status"]["message"]
    stage.bed.patch("networkconfigurations", "void", {"spec": {"bridge": "br9"}})
    stage.bed.wait(
        "it is not mended",
        lambda: told(stage, "void").get("status", {}).get("phase") == "Ready",
    )
    assert "message" not in told(stage, "void")["status"]


def test_what_others_write_about_a_network_is_left_alone(stage: MachineStage) -> None:
    """Upstream has somebody else hand out addresses, who says how that is going."""
    stage.network("kea", vlan=8, provider="kea")
    until_used_by(stage, "kea")
    theirs = {
        "phase": "Allocated",
        "networkInterfaces": [{"macAddress": "52:54:00:12:34:56", "ipAllocated": True}],
    }
    path = stage.bed.path("networkconfigurations", "kea")
    stage.bed.api.call("PATCH", f"{path}/status", {"status": theirs}, merge=True)
    stage.declare("leaser", networks=[{"name": "eth0", "networkName": "kea"}])
    status = until_used_by(stage, "kea", "leaser")["status"]
    assert {name: status[name] for name in theirs} == theirs
