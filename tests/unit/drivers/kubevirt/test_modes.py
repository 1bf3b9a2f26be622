"""Claims that storage can serve, and clusters that allow what was asked for."""

from typing import Any

import pytest

from novacron.core.errors import Rejected
from novacron.core.volume import Access
from novacron.drivers.kubevirt.modes import claim_modes
from novacron.drivers.kubevirt.settings import Settings, settings_of

RWX_BLOCK: dict[str, Any] = {"accessModes": ["ReadWriteMany"], "volumeMode": "Block"}
RWO_FILE: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem"}
RWO_BLOCK: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "volumeMode": "Block"}


@pytest.mark.parametrize(
    ("access", "block", "profile", "modes"),
    [
        (None, None, [], (Access.ONCE, False)),
        (None, None, [RWO_FILE, RWX_BLOCK], (Access.MANY, True)),
        (None, None, [RWO_BLOCK, RWO_FILE], (Access.ONCE, True)),
        (None, False, [RWX_BLOCK, RWO_FILE], (Access.ONCE, False)),
        (Access.ONCE, None, [RWX_BLOCK, RWO_BLOCK], (Access.ONCE, True)),
        (Access.READ_ONLY, None, [RWX_BLOCK], (Access.READ_ONLY, False)),
        (Access.MANY, False, [RWO_FILE], (Access.MANY, False)),
    ],
)
def test_claims_ask_for_what_lets_machines_move(access, block, profile, modes) -> None:
    """What a disk says counts; for the rest, the storage's best that can be shared."""
    assert claim_modes(access, profile, block=block) == modes


def test_a_chipset_that_the_cluster_does_not_allow_is_named_with_the_remedy() -> None:
    """Which ones there are is a setting of the cluster."""
    usual = settings_of([{"spec": {"configuration": {}, "workloadUpdateStrategy": {}}}])
    for allowed in (None, "q35", "pc-q35-rhel9.4.0"):
        usual.require_machine_type(allowed)
    with pytest.raises(Rejected, match="allows no machine of type pc-i440fx, only q35") as refusal:
        usual.require_machine_type("pc-i440fx")
    assert refusal.value.reason == "MachineTypeNotAllowed"
    Settings(machine_types=("q35*", "pc-i440fx*")).require_machine_type("pc-i440fx")
    Settings().require_machine_type("pc-i440fx")


def test_a_machine_that_may_travel_only_encrypted_is_refused_where_it_would_not() -> None:
    """KubeVirt encrypts moves unless it is told not to, and then tells nobody."""
    clear = settings_of([{"spec": {"configuration": {"migrations": {"disableTLS": True}}}}])
    clear.require_encryption(wanted=False)
    with pytest.raises(Rejected, match="disableTLS") as refusal:
        clear.require_encryption(wanted=True)
    assert refusal.value.reason == "MovesNotEncrypted"
    for migrations in ({}, {"disableTLS": False}, {"bandwidthPerMigration": "64Mi"}):
        found = settings_of([{"spec": {"configuration": {"migrations": migrations}}}])
        found.require_encryption(wanted=True)
    Settings().require_encryption(wanted=True)


def test_a_cluster_can_do_what_its_configuration_says() -> None:
    """Features that are off are off, and KubeVirt's defaults are known."""
    gates = {"featureGates": ["HotplugVolumes"]}
    configuration = {"developerConfiguration": gates, "vmRolloutStrategy": "Stage"}
    found = settings_of([{"spec": {"configuration": configuration}}])
    assert found == Settings(
        live_update=False,
        moves_by_itself=False,
        volumes_pluggable=True,
        disks_expandable=False,
        machine_types=("q35*", "pc-q35*"),
    )
    assert settings_of([{"spec": {"configuration": {}}}]).live_update
    machines = {"architectureConfiguration": {"amd64": {"emulatedMachines": ["pc-i440fx*"]}}}
    assert settings_of([{"spec": {"configuration": machines}}]).machine_types == ("pc-i440fx*",)
