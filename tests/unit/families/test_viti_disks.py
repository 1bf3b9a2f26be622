"""Disks of a Machine: joined by name, and one to boot from."""

import pytest

from novacron.families.viti.disks import merged_disks

ROOT = {"name": "root", "size": "20Gi", "storageClass": "default"}


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
