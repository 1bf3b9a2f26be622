"""What a cluster's objects say of a machine, by objects that a real KubeVirt had."""

from copy import deepcopy
from dataclasses import replace
from datetime import timedelta

import orjson
import pytest

from novacron.core.machine import Power
from novacron.drivers.kubevirt import look
from novacron.drivers.kubevirt.attention import OWN_TURN
from novacron.drivers.kubevirt.guest_facts import facts_of_guest
from novacron.drivers.kubevirt.settings import Settings
from unit.drivers.kubevirt.recordings import STATES, recorded

LONG = timedelta(minutes=1)


def observed(has):
    return look.observed(has, Settings())


def parts(seen):
    return {part.type: (part.status, part.reason) for part in seen.parts}


@pytest.mark.parametrize(
    ("state", "power", "changing", "hindered"),
    [
        ("running", Power.ON, None, None),
        ("stopped", Power.OFF, None, None),
        ("starting", Power.OFF, "start", None),
        ("unbound", Power.OFF, "start", None),
        ("crashing", Power.OFF, "start", "VMFailed"),
        ("unschedulable", Power.OFF, "start", "InsufficientResources"),
    ],
)
def test_every_state_has_its_word(state, power, changing, hindered):
    seen = observed(recorded(state))
    assert (seen.power, seen.changing) == (power, changing)
    assert (seen.hindered.reason if seen.hindered else None) == hindered
    assert seen.drifted is None
    assert seen.vm_id


def test_every_recording_is_looked_at():
    assert set(STATES) == {
        *("running", "stopped", "starting", "unbound", "crashing", "unschedulable"),
    }


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_guest_that_has_ended_is_nowhere_and_has_no_address(phase):
    """KubeVirt keeps the instance for a moment, with the addresses and the node it had."""
    has = recorded("running")
    has.machine["spec"]["runStrategy"] = "Halted"
    has.instance["status"]["phase"] = phase
    seen = observed(has)
    assert (seen.power, seen.changing) == (Power.OFF, None)
    assert (seen.addresses, seen.node) == ((), None)


def test_a_running_machine_has_what_it_was_given():
    seen = observed(recorded("running"))
    assert (seen.resources.vcpus, seen.resources.memory_mib) == (1, 2048)
    assert seen.resources.disk_mib == 20 * 1024
    assert seen.after_restart is None
    assert [volume.name for volume in seen.volumes] == ["data"]
    assert seen.addresses
    assert seen.node.startswith("kubevirt-")
    assert parts(seen) == {
        "NetworkReady": ("True", "NetworkConfigured"),
        "StorageReady": ("True", "PVCBound"),
        "VirtualMachineReady": ("True", "VMCreated"),
    }


def test_nothing_is_seen_of_a_machine_of_which_only_disks_are_left():
    assert observed(recorded("running", machine=None, instance=None)) is None


def test_a_claim_that_waits_is_said_at_once_and_complained_about_later():
    """Every claim waits for a moment."""
    soon, late = observed(recorded("unbound")), observed(recorded("unbound", after=LONG))
    assert parts(soon)["StorageReady"] == parts(late)["StorageReady"] == ("False", "PVCPending")
    assert soon.hindered is None
    assert late.hindered.reason == "PVCPending"
    assert "waiting-root" in late.hindered.message
    assert "StorageClass slow" in late.hindered.message


def test_a_claim_waits_its_turn_where_others_are_bound():
    """Five hundred machines at once are no fault of the storage."""
    busy = {"after": LONG, "unbound": timedelta(seconds=1)}
    assert observed(recorded("unbound", **busy)).hindered is None
    later = {**busy, "after": OWN_TURN + LONG}
    assert observed(recorded("unbound", **later)).hindered.reason == "PVCPending"


def test_a_lost_volume_is_named():
    has = recorded("starting")
    for claim in has.claims:
        claim["status"] = {"phase": "Lost"}
    assert observed(has).hindered.reason == "PVCLost"


def test_the_scheduler_is_quoted():
    message = observed(recorded("unschedulable")).hindered.message
    assert "3 Insufficient memory" in message
    assert message.endswith("add nodes or ask for less")


def test_the_scheduler_is_heard_where_kubevirt_does_not_pass_it_on():
    has = recorded("unschedulable")
    said = next(
        each for each in has.instance["status"]["conditions"] if each["type"] == "PodScheduled"
    )
    pod = {"status": {"conditions": [said]}}
    has.machine["status"]["printableStatus"] = "Starting"
    has.instance["status"]["conditions"] = []
    assert observed(has).hindered is None
    heard = recorded("unschedulable", machine=has.machine, instance=has.instance, unplaced=pod)
    assert "3 Insufficient memory" in observed(heard).hindered.message


def test_a_pod_that_waits_for_its_claims_lacks_no_room():
    pod = {
        "status": {
            "conditions": [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "Unschedulable",
                    "message": "pod has unbound immediate PersistentVolumeClaims",
                }
            ]
        }
    }
    assert observed(recorded("unbound", unplaced=pod)).hindered is None
    assert observed(recorded("unbound", unplaced=pod, after=LONG)).hindered.reason == "PVCPending"


def test_a_guest_that_ends_is_told_of_with_what_it_said():
    message = observed(recorded("crashing")).hindered.message
    assert message == (
        "CrashLoopBackOff (no kernel found): its guest ends as soon as it is started: look at its "
        "console"
    )


def test_between_two_tries_a_guest_is_told_of_with_its_last_words():
    has = recorded("crashing", last_words="no kernel found")
    has.machine["status"]["conditions"] = []
    assert "(no kernel found)" in observed(has).hindered.message
    has.machine["status"]["printableStatus"] = "ErrImagePull"
    assert "no kernel" not in observed(has).hindered.message, "that is another trouble"


def test_a_machine_that_kubevirt_does_not_act_on_is_said_after_a_while():
    has = recorded("starting", unheeded=timedelta(seconds=5))
    assert observed(has).hindered is None
    seen = observed(recorded("starting", unheeded=LONG))
    assert seen.hindered.reason == "KubeVirtApiError"
    assert "virt-controller" in seen.hindered.message
    assert parts(seen)["VirtualMachineReady"] == ("False", "VMFailed")


def test_also_where_it_is_to_stop():
    seen = observed(recorded("running", unheeded=LONG))
    assert parts(seen)["VirtualMachineReady"] == ("False", "VMFailed")
    assert seen.hindered is None, "it runs"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda vm: vm["spec"]["template"]["spec"]["domain"]["memory"].update(guest="9Gi"),
            "somebody changed spec.domain.memory.guest of its VirtualMachine",
        ),
        (
            lambda vm: vm["metadata"]["labels"].pop("vitistack.io/machine"),
            "somebody changed labels.vitistack.io/machine of its VirtualMachine",
        ),
        (
            lambda vm: vm["metadata"].update(annotations={}),
            "somebody took our record off its VirtualMachine",
        ),
    ],
)
def test_what_somebody_changed_is_named(change, said):
    has = recorded("running")
    change(has.machine)
    assert observed(has).drifted == said


def test_what_somebody_added_is_theirs():
    has = recorded("running")
    has.machine["metadata"]["labels"]["team"] = "blue"
    has.machine["spec"]["template"]["metadata"]["annotations"] = {"a": "b"}
    assert observed(has).drifted is None


def test_a_claim_that_somebody_deleted_is_named():
    has = recorded("stopped")
    left = [each for each in has.claims if each["metadata"]["name"] != "web-root"]
    seen = observed(recorded("stopped", claims=tuple(left)))
    assert seen.drifted == "somebody deleted PersistentVolumeClaim web-root"


def test_a_claim_that_goes_when_the_machine_stops_is_said():
    has = recorded("running")
    has.claims[0]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    seen = observed(has)
    assert parts(seen)["StorageReady"] == ("False", "PVCPending")
    assert seen.power is Power.ON


def test_an_instance_without_its_machine_is_asked_for_again():
    """Unless it goes: then it was deleted, and something new is made once it is gone."""
    has = recorded("running", machine=None)
    seen = observed(has)
    assert (seen.power, seen.changing, seen.abandoned) == (Power.ON, "create", True)
    going = deepcopy(has.instance)
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    seen = observed(recorded("running", machine=None, instance=going))
    assert (seen.power, seen.changing, seen.abandoned) == (Power.ON, "delete", False)


def test_a_machine_that_is_deleted_is_leaving():
    has = recorded("running")
    has.machine["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert (observed(has).power, observed(has).changing) == (Power.ON, "delete")


def test_what_kubevirt_tells_of_a_guest_is_passed_on():
    has = recorded("running")
    has.instance["status"]["guestOSInfo"] = {
        "prettyName": "Debian GNU/Linux 13 (trixie)",
        "version": "13",
        "kernelRelease": "6.12.0",
    }
    seen = observed(has)
    guest = seen.guest
    assert (guest.state, guest.hostname, guest.architecture) == ("Running", "web", "amd64")
    assert guest.system == "Debian GNU/Linux 13 (trixie)"
    assert (guest.system_version, guest.kernel) == ("13", "6.12.0")
    assert guest.created <= guest.started
    (nic,) = guest.nics
    assert (nic.name, nic.addresses, nic.link) == ("default", seen.addresses, "up")
    first = seen.first_volume
    assert (first.access.value, first.block, first.bus) == ("ReadWriteOnce", False, "virtio")
    assert first.device == "vda"


def test_a_machine_that_is_off_was_made_and_not_started():
    guest = observed(recorded("stopped")).guest
    assert guest.created is not None
    assert (guest.state, guest.started, guest.nics) == ("Stopped", None, ())


def test_the_claim_of_an_install_medium_is_where_its_import_is():
    """It carries no disk's name, so nobody took it away who did not see it among the disks."""
    has = recorded("running")
    note = has.machine["metadata"]["annotations"]
    applied = orjson.loads(note["novacron.io/applied"])
    medium = {"name": "iso", "persistentVolumeClaim": {"claimName": "web-iso"}}
    for template in (applied, has.machine["spec"]["template"]):
        template["spec"]["volumes"].append(medium)
    note["novacron.io/applied"] = orjson.dumps(applied).decode()
    labels = {"novacron.io/machine-uid": "u", "novacron.io/medium": "iso"}
    brought = {"metadata": {"name": "web-iso", "labels": labels}, "status": {"phase": "Succeeded"}}
    assert observed(has).drifted == "somebody deleted PersistentVolumeClaim web-iso"
    assert observed(replace(has, imports=(brought,))).drifted is None


def test_a_machine_without_a_guest_is_stopped_whatever_is_still_said_of_it():
    machine = {**recorded("running").machine}
    machine["status"] = {**machine["status"], "printableStatus": "Running"}
    assert facts_of_guest(machine, None).state == "Stopped"
    machine["status"]["printableStatus"] = "ErrorUnschedulable"
    assert facts_of_guest(machine, None).state == "ErrorUnschedulable"
