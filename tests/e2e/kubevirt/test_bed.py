"""The bed itself: KubeVirt's own programs answer, and the stand-in plays their nodes."""

from typing import Any

from kubevirt_bed import FAIL, HOLD, KubeVirtBed, claim, virtual_machine


def started(bed: KubeVirtBed, name: str, *claims: str, **changes: Any) -> dict[str, Any]:
    """A VirtualMachine that runs, and its instance."""
    for each in claims:
        bed.create("persistentvolumeclaims", claim(each))
    bed.create("virtualmachines", virtual_machine(name, *claims, **changes))
    return bed.instance(name)


def printable(bed: KubeVirtBed, name: str) -> str | None:
    """What KubeVirt calls the state of a VirtualMachine."""
    found = bed.get("virtualmachines", name)
    return found["status"].get("printableStatus") if found and "status" in found else None


def test_a_virtual_machine_runs_with_an_address_and_a_volume(kubevirt: KubeVirtBed) -> None:
    instance = started(kubevirt, "one", "one-root")
    assert instance["status"]["nodeName"].startswith("kubevirt-")
    assert instance["status"]["interfaces"][0]["ipAddress"]
    assert kubevirt.get("persistentvolumeclaims", "one-root")["status"]["phase"] == "Bound"
    kubevirt.wait("it is not Running", lambda: printable(kubevirt, "one") == "Running")


def test_power_goes_through_the_subresources_of_virt_api(kubevirt: KubeVirtBed) -> None:
    first = started(kubevirt, "power")
    kubevirt.ask("power", "restart")

    def another() -> dict[str, Any] | None:
        found = kubevirt.get("virtualmachineinstances", "power")
        fresh = found and found["metadata"]["uid"] != first["metadata"]["uid"]
        return found if fresh and found["status"].get("phase") == "Running" else None

    kubevirt.wait("it was not restarted", another)
    kubevirt.ask("power", "stop")
    kubevirt.wait("it was not stopped", lambda: printable(kubevirt, "power") == "Stopped")
    assert kubevirt.get("virtualmachineinstances", "power") is None
    kubevirt.ask("power", "start")
    kubevirt.instance("power")


def test_a_migration_succeeds_on_another_node(kubevirt: KubeVirtBed) -> None:
    before = started(kubevirt, "mover", "mover-root")["status"]["nodeName"]
    kubevirt.create(
        "virtualmachineinstancemigrations",
        {"metadata": {"name": "move"}, "spec": {"vmiName": "mover"}},
    )

    def phase() -> str:
        found = kubevirt.get("virtualmachineinstancemigrations", "move")
        return (found.get("status") or {}).get("phase", "") if found else ""

    kubevirt.wait("the migration did not succeed", lambda: phase() == "Succeeded")
    assert kubevirt.instance("mover")["status"]["nodeName"] != before

    def pods() -> list[str]:
        found = kubevirt.items("pods", "vm.kubevirt.io/name=mover")
        return sorted(pod["status"]["phase"] for pod in found)

    kubevirt.wait("the source pod stayed", lambda: pods() == ["Running", "Succeeded"])


def test_a_claim_grows_and_the_guest_sees_it(kubevirt: KubeVirtBed) -> None:
    started(kubevirt, "grower", "grower-root")
    size = {"spec": {"resources": {"requests": {"storage": "20Gi"}}}}
    kubevirt.patch("persistentvolumeclaims", "grower-root", size)

    def seen() -> bool:
        found = kubevirt.instance("grower")["status"]["volumeStatus"]
        return found[0].get("size") == 20 * 2**30

    kubevirt.wait("the guest does not see it", seen)


def test_a_claim_waits_for_as_long_as_it_is_held(kubevirt: KubeVirtBed) -> None:
    body = claim("stuck-root")
    body["metadata"]["annotations"] = {HOLD: "true"}
    kubevirt.create("persistentvolumeclaims", body)
    kubevirt.create("virtualmachines", virtual_machine("stuck", "stuck-root"))
    waiting = "WaitingForVolumeBinding"
    kubevirt.wait("it does not wait", lambda: printable(kubevirt, "stuck") == waiting)
    kubevirt.annotate("persistentvolumeclaims", "stuck-root", HOLD, None)
    kubevirt.instance("stuck")


def test_a_guest_fails_with_the_message_it_is_told(kubevirt: KubeVirtBed) -> None:
    notes = {FAIL: "no kernel found"}
    body = virtual_machine("broken", annotations=notes, runStrategy="RerunOnFailure")
    kubevirt.create("virtualmachines", body | {"spec": body["spec"] | {"runStrategy": "Once"}})
    failed = kubevirt.instance("broken", "Failed")
    messages = [each.get("message") for each in failed["status"]["conditions"]]
    assert "no kernel found" in messages


def test_what_no_node_has_room_for_is_unschedulable(kubevirt: KubeVirtBed) -> None:
    kubevirt.create(
        "virtualmachines", virtual_machine("giant", domain={"memory": {"guest": "9Ti"}})
    )
    unschedulable = "ErrorUnschedulable"
    kubevirt.wait("it has room", lambda: printable(kubevirt, "giant") == unschedulable)
