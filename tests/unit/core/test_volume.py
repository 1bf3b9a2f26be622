"""What a machine is given of its volumes, and when it has them."""

from dataclasses import replace

import pytest

from novacron.core.machine import Machine, Observed, Power, Resources
from novacron.core.volume import Attachment, SeenVolume, Volume, are_as_planned, volume_id

DATA = Volume("data", 100)
MACHINE = Machine(
    uid="uid-1",
    namespace="default",
    name="vm",
    wanted=Resources(1, 512, 160),
    image="builtin://tiny",
    power=Power.ON,
    volumes=(DATA, Volume("fast", 50, storage_class="ssd")),
    detached_mib=20,
    host="a",
    reserved=Resources(1, 512, 160),
)


def seen(attachment: Attachment, size_mib: int = 100) -> SeenVolume:
    """Return the volume as a host tells of it."""
    return SeenVolume("data", size_mib, attachment, volume_id("vm", "data", "uid-1"))


def test_the_first_disk_is_what_is_wanted_without_volumes_of_the_host() -> None:
    """Volumes of a class are on other storage, those taken off still take room."""
    plan = MACHINE.plan()
    assert plan.resources == Resources(1, 512, 40)
    assert plan.volumes == MACHINE.volumes


def test_disks_that_are_not_granted_stay_as_they_are() -> None:
    """A host without room must cost a machine neither a volume nor a part of its disk."""
    refused = replace(MACHINE, reserved=Resources(2, 1024, 100))
    has = Observed("uid-1", "1", Power.ON, Resources(1, 512, 30))
    assert refused.plan(has).resources == Resources(2, 1024, 30)
    assert refused.plan(has).volumes is None


@pytest.mark.parametrize("attachment", list(Attachment))
def test_a_volume_is_as_planned_when_the_machine_is_set_to_have_it(
    attachment: Attachment,
) -> None:
    """One that waits for a restart is, or comes; one that is being let go of is none any more."""
    has = [seen(attachment)]
    joined = attachment not in (Attachment.PENDING, Attachment.DETACHED, Attachment.DETACHING)
    apart = attachment in (Attachment.DETACHED, Attachment.DETACHING)
    assert are_as_planned(has, [DATA]) == joined
    assert are_as_planned(has, []) == apart
    assert not are_as_planned(has, [replace(DATA, size_mib=200)])


def test_volumes_of_machines_with_the_same_name_are_not_the_same() -> None:
    """Whoever makes a machine anew gets an empty volume unless they name the old one."""
    assert volume_id("vm", "data", "uid-1") != volume_id("vm", "data", "uid-2")
