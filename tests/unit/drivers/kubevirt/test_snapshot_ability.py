"""Which snapshots are asked for at all: KubeVirt would take one that lacks a disk."""

import pytest

from novacron.core.errors import Rejected
from novacron.drivers.kubevirt.belongings import Belongings
from novacron.drivers.kubevirt.snapshots import is_able
from unit.drivers.kubevirt.recordings import recorded


def told(**able: bool) -> Belongings:
    """A running machine, of whose disks KubeVirt says whether they can be snapshot."""
    has = recorded("running")
    assert has.machine is not None
    statuses = [{"name": name, "enabled": can} for name, can in able.items()]
    has.machine["status"]["volumeSnapshotStatuses"] = statuses
    return has


def test_a_machine_whose_disks_can_all_be_snapshot_is() -> None:
    """What a guest is told about itself is no disk of its owner's."""
    assert is_able(told(root=True, data=True, cloudinitdisk=False))


def test_a_disk_that_cannot_be_snapshot_is_named() -> None:
    with pytest.raises(Rejected, match=r"disk data \(KubeVirt does not say why\)"):
        is_able(told(root=True, data=False))


@pytest.mark.parametrize("able", [{}, {"root": True}])
def test_a_disk_of_which_kubevirt_has_said_nothing_yet_is_waited_for(able: dict[str, bool]) -> None:
    """Right after a machine is made nothing is said; a snapshot then would be empty, and whole."""
    assert not is_able(told(**able))
