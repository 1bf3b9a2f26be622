"""Disks of a Machine: joined by name, one to boot from, and claims that storage can serve."""

from typing import Any

import pytest

from novacron.families.viti.disks import ClaimModes, claim_modes, merged_disks
from novacron.families.viti.marks import claim_name, iso_claim_name
from novacron.families.viti.values import Disk

ROOT = {"name": "root", "size": "20Gi", "storageClass": "default"}
RWX_BLOCK: dict[str, Any] = {"accessModes": ["ReadWriteMany"], "volumeMode": "Block"}
RWO_FILE: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem"}
RWO_BLOCK: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "volumeMode": "Block"}


def test_a_disk_of_the_same_name_changes_only_what_it_says() -> None:
    """Another class keeps the size, another size keeps the class."""
    (disk,) = merged_disks([ROOT], [{"name": "root", "storageClass": "fast"}])
    assert (disk.size_mib, disk.storage_class) == (20 * 1024, "fast")
    (disk,) = merged_disks([ROOT], [{"name": "root", "sizeGB": 30}])
    assert (disk.size_mib, disk.storage_class) == (30 * 1024, "default")


def test_the_templates_disks_come_first_and_keep_their_place() -> None:
    """The guest's first disk stays the first, whatever order the machine lists them in."""
    own = [{"name": "data", "size": "1Gi"}, {"name": "root", "size": "30Gi"}]
    assert [disk.name for disk in merged_disks([ROOT], own)] == ["root", "data"]


@pytest.mark.parametrize(
    ("own", "boots"),
    [
        ([{"name": "data", "size": "1Gi"}], "root"),
        ([{"name": "data", "size": "1Gi", "boot": True}], "data"),
        ([{"name": "root", "boot": False}, {"name": "data", "size": "1Gi"}], "root"),
    ],
)
def test_exactly_one_disk_boots(own, boots) -> None:
    """The one that says so, else root."""
    assert [disk.name for disk in merged_disks([ROOT], own) if disk.boot] == [boots]


def test_claims_are_called_after_machine_and_disk_and_never_too_long() -> None:
    """253 letters is what a claim may have; names of both are at most 63."""
    assert claim_name("web", "root") == "web-root"
    assert len(claim_name("m" * 63, "d" * 63)) <= 253
    assert iso_claim_name("web") == "web-iso"


@pytest.mark.parametrize(
    ("said", "profile", "modes"),
    [
        ((None, None), [], ClaimModes("ReadWriteOnce", "Filesystem")),
        ((None, None), [RWO_FILE, RWX_BLOCK], ClaimModes("ReadWriteMany", "Block")),
        ((None, None), [RWO_BLOCK, RWO_FILE], ClaimModes("ReadWriteOnce", "Block")),
        ((None, "Filesystem"), [RWX_BLOCK, RWO_FILE], ClaimModes("ReadWriteOnce", "Filesystem")),
        (("ReadWriteOnce", None), [RWX_BLOCK, RWO_BLOCK], ClaimModes("ReadWriteOnce", "Block")),
        (("ReadOnlyMany", None), [RWX_BLOCK], ClaimModes("ReadOnlyMany", "Filesystem")),
        (("ReadWriteMany", "Filesystem"), [RWO_FILE], ClaimModes("ReadWriteMany", "Filesystem")),
    ],
)  # fmt: skip
def test_claims_ask_for_what_lets_machines_move(said, profile, modes) -> None:
    """What a disk says counts; for the rest, the storage's best that can be shared."""
    access, volume = said
    assert claim_modes(Disk("d", 1, None, access, volume), profile) == modes
