"""The bed itself: KubeVirt's own programs answer, and the stand-in plays their nodes."""

import pytest

from api import Refused
from kubevirt_bed import FAIL, HOLD, KubeVirtBed, claim, migration, virtual_machine


def test_a_virtual_machine_runs_with_an_address_and_a_volume(kubevirt: KubeVirtBed) -> None:
    instance = kubevirt.started("one", "one-root")
    assert instance["status"]["nodeName"].startswith("kubevirt-")
    assert instance["status"]["interfaces"][0]["ipAddress"]
    assert kubevirt.get("persistentvolumeclaims", "one-root")["status"]["phase"] == "Bound"
    kubevirt.wait("it is not Running", lambda: kubevirt.printable("one") == "Running")


@pytest.mark.full
def test_what_virt_api_would_refuse_is_refused(kubevirt: KubeVirtBed) -> None:
    """The webhooks are KubeVirt's own."""
    devices = {"interfaces": [{"name": "default", "masquerade": {}, "macAddress": "nonsense"}]}
    body = virtual_machine("wrong", domain={"devices": devices})
    with pytest.raises(Refused, match="nonsense"):
        kubevirt.create("virtualmachines", body)


def test_power_goes_through_the_subresources_of_virt_api(kubevirt: KubeVirtBed) -> None:
    first = kubevirt.started("power")
    kubevirt.ask("power", "restart")

    def restarted() -> bool:
        found = kubevirt.get("virtualmachineinstances", "power")
        fresh = found is not None and found["metadata"]["uid"] != first["metadata"]["uid"]
        return fresh and found["status"].get("phase") == "Running"

    kubevirt.wait("it was not restarted", restarted)
    kubevirt.ask("power", "stop")
    kubevirt.wait("it was not stopped", lambda: kubevirt.printable("power") == "Stopped")
    gone = lambda: kubevirt.get("virtualmachineinstances", "power") is None  # noqa: E731
    kubevirt.wait("its instance stayed", gone)
    kubevirt.ask("power", "start")
    kubevirt.instance("power")


def test_a_migration_succeeds_on_another_node(kubevirt: KubeVirtBed) -> None:
    before = kubevirt.started("mover", "mover-root")["status"]["nodeName"]
    kubevirt.create("virtualmachineinstancemigrations", migration("move", "mover"))
    kubevirt.migrated("move")
    assert kubevirt.instance("mover")["status"]["nodeName"] != before

    def pods() -> list[str]:
        found = kubevirt.items("pods", "vm.kubevirt.io/name=mover")
        return sorted(pod["status"]["phase"] for pod in found)

    kubevirt.wait("the source pod stayed", lambda: pods() == ["Running", "Succeeded"])


@pytest.mark.full
def test_a_migration_fails_when_it_is_to(kubevirt: KubeVirtBed) -> None:
    before = kubevirt.started("stayer")["status"]["nodeName"]
    body = migration("doomed", "stayer", {FAIL: "the network is down"})
    kubevirt.create("virtualmachineinstancemigrations", body)
    kubevirt.migrated("doomed", "Failed")
    stays = kubevirt.instance("stayer")
    assert stays["status"]["nodeName"] == before
    assert stays["status"]["migrationState"]["failureReason"] == "the network is down"


@pytest.mark.full
def test_a_disk_of_one_node_only_stands_in_the_way_of_a_migration(kubevirt: KubeVirtBed) -> None:
    kubevirt.create("persistentvolumeclaims", claim("alone-root", mode="ReadWriteOnce"))
    kubevirt.create("virtualmachines", virtual_machine("alone", "alone-root"))
    kubevirt.instance("alone")
    verdict = kubevirt.condition("alone", "LiveMigratable")
    assert (verdict["status"], verdict["reason"]) == ("False", "DisksNotLiveMigratable")


@pytest.mark.full
def test_a_claim_grows_and_the_guest_sees_it(kubevirt: KubeVirtBed) -> None:
    kubevirt.started("grower", "grower-root")
    size = {"spec": {"resources": {"requests": {"storage": "20Gi"}}}}
    kubevirt.patch("persistentvolumeclaims", "grower-root", size)

    def seen() -> bool:
        found = kubevirt.instance("grower")["status"]["volumeStatus"]
        return found[0].get("size") == 20 * 2**30

    kubevirt.wait("the guest does not see it", seen)


@pytest.mark.full
def test_a_volume_goes_with_its_claim(kubevirt: KubeVirtBed) -> None:
    kubevirt.create("persistentvolumeclaims", claim("brief", storageClassName="fast-ssd"))

    def bound() -> str | None:
        return kubevirt.get("persistentvolumeclaims", "brief")["spec"].get("volumeName")

    volume = kubevirt.wait("it is not bound", bound)
    kubevirt.delete("persistentvolumeclaims", "brief")
    gone = lambda: kubevirt.get("persistentvolumes", volume, "") is None  # noqa: E731
    kubevirt.wait("the volume stayed", gone)


@pytest.mark.full
def test_a_claim_waits_for_as_long_as_it_is_held(kubevirt: KubeVirtBed) -> None:
    body = claim("stuck-root")
    body["metadata"]["annotations"] = {HOLD: "true"}
    kubevirt.create("persistentvolumeclaims", body)
    kubevirt.create("virtualmachines", virtual_machine("stuck", "stuck-root"))
    kubevirt.wait("it does not wait", lambda: kubevirt.awaits_claims("stuck"))
    kubevirt.annotate("persistentvolumeclaims", "stuck-root", HOLD, None)
    kubevirt.instance("stuck")


@pytest.mark.full
def test_a_guest_waits_for_as_long_as_it_is_held(kubevirt: KubeVirtBed) -> None:
    kubevirt.create("virtualmachines", virtual_machine("late", annotations={HOLD: "true"}))
    kubevirt.instance("late", "Scheduled")
    kubevirt.annotate("virtualmachineinstances", "late", HOLD, None)
    kubevirt.instance("late")


@pytest.mark.full
def test_a_guest_fails_with_the_message_it_is_told(kubevirt: KubeVirtBed) -> None:
    """In an event, as always: virt-controller takes the condition away again."""
    notes = {FAIL: "no kernel found"}
    body = virtual_machine("broken", annotations=notes, runStrategy="Once")
    kubevirt.create("virtualmachines", body)
    kubevirt.instance("broken", "Failed")

    def told() -> bool:
        said = kubevirt.api.events(kubevirt.namespace, "broken")
        return ("SyncFailed", "no kernel found") in [(e["reason"], e["message"]) for e in said]

    kubevirt.wait("nobody is told why", told)


@pytest.mark.full
def test_what_no_node_has_room_for_is_unschedulable(kubevirt: KubeVirtBed) -> None:
    body = virtual_machine("giant", domain={"memory": {"guest": "9Ti"}})
    kubevirt.create("virtualmachines", body)
    unschedulable = "ErrorUnschedulable"
    kubevirt.wait("it has room", lambda: kubevirt.printable("giant") == unschedulable)


@pytest.mark.full
def test_sockets_and_memory_grow_while_the_guest_runs(kubevirt: KubeVirtBed) -> None:
    """virt-controller looks for what to migrate only every few seconds."""
    kubevirt.started("bigger", "bigger-root")
    domain = {"cpu": {"sockets": 3}, "memory": {"guest": "2Gi"}}
    patch = {"spec": {"template": {"spec": {"domain": domain}}}}
    kubevirt.patch("virtualmachines", "bigger", patch)

    def grown() -> bool:
        status = kubevirt.instance("bigger")["status"]
        has = (status["currentCPUTopology"]["sockets"], status["memory"]["guestCurrent"])
        asked = {each["type"] for each in status["conditions"]}
        return has == (3, "2Gi") and asked.isdisjoint({"HotVCPUChange", "HotMemoryChange"})

    kubevirt.wait("it did not grow", grown, seconds=120)
