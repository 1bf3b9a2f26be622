"""Which storage classes volumes need, in the words in which a machine says that no host has one."""

from typing import Any

import pytest

from novacron.core.volume import Access, Volume
from novacron.families.novacron.volume_translate import classes_needed, classes_of


def settings(**kind: Any) -> dict[str, Any]:
    """Return those of a host with one class."""
    return {"storageClasses": [{"name": "team", "pool": "there", **kind}]}


@pytest.mark.parametrize("access", list(Access))
def test_a_shared_class_is_good_for_every_volume(access: Access) -> None:
    """What several hosts see serves one machine too."""
    needed = classes_needed([Volume("board", 16, "team", access)])
    assert needed <= set(classes_of(settings(shared=True)))


def test_a_volume_for_several_machines_needs_a_class_that_hosts_share() -> None:
    """Else the second machine would have another volume of the same name; which is said so."""
    (needed,) = classes_needed([Volume("board", 16, "team", Access.MANY)])
    assert needed not in set(classes_of(settings()))
    assert needed.name == "team that is shared: true"
    (plain,) = classes_needed([Volume("data", 16, "team")])
    assert plain in set(classes_of(settings()))


def test_a_volume_without_a_class_is_in_the_hosts_own_storage() -> None:
    """Which every host has."""
    assert not classes_needed([Volume("data", 16)])
