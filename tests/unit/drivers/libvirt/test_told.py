"""A guest is restarted for its networks when it is to be told something new, and only then."""

from collections.abc import Iterator
from dataclasses import replace
from xml.etree import ElementTree as ET

import libvirt
import pytest

from novacron.core.machine import MachinePlan, MachineRef, Nic, Resources
from novacron.drivers.libvirt.defined import Defined
from novacron.drivers.libvirt.interfaces import Plugged, mac_of
from novacron.drivers.libvirt.look import Domain, Known, observed
from novacron.drivers.libvirt.mark import NAMESPACE, Mark
from novacron.drivers.libvirt.ports import Port

UID = "9a6a2f0e-6d5f-4d8f-9d3a-0a3c1f2b4c5d"
STATIC = Nic(
    "management",
    "10.0.1.10/24",
    "10.0.1.1",
    "fd00::7/64",
    "fd00::1",
    dns_servers=("9.9.9.9",),
    dns_search=("example.test",),
)
OTHER = Nic("other", "10.0.2.10/24", "10.0.2.1")
# What was written for STATIC before words were made of what a guest is told.
BEFORE = f"""
<metadata><n:machine xmlns:n="{NAMESPACE}" uid="{UID}" namespace="default" name="vm" recipe="r"
  image="i" shape="s" cpu="" disk="256"
  told='[["{mac_of(UID, STATIC)}", "808d059025c0", "10.0.1.10", "fd00::7"]]'/></metadata>
"""


@pytest.fixture
def handle() -> Iterator[libvirt.virDomain]:
    """A domain that is asked nothing: all there is to compare is in the two definitions."""
    connection = libvirt.open("test:///default")
    yield connection.listAllDomains()[0]
    connection.close()


def planned(*nics: Nic) -> MachinePlan:
    """Return a machine with these interfaces."""
    return MachinePlan(MachineRef(UID, "default", "vm", "far"), Resources(1, 192, 256), "i", nics)


def marked_before() -> Mark:
    """Return the mark of a guest that was started with STATIC by an earlier operator."""
    mark = Mark.found(ET.fromstring(BEFORE))
    assert mark is not None
    return mark


def waiting(handle: libvirt.virDomain, mark: Mark, *nics: Nic) -> tuple[str, ...]:
    """Return what waits for a restart of a guest with this mark that is to have these."""
    plan = planned(*nics)
    plugged = tuple(Plugged(mac_of(UID, nic), Port("bridge", "br0")) for nic in nics)
    now = Defined.written(plan, "default.vm", "seed", plugged, Mark.of(plan), "<domain/>")
    state = libvirt.VIR_DOMAIN_RUNNING
    domain = Domain(handle, now, replace(now, mark=mark), state, 1, without_snapshots=True)
    return observed(domain, Known(), complete=True).awaits_restart


def test_what_only_the_host_is_told_restarts_no_guest(handle: libvirt.virDomain) -> None:
    """What its network has to be was added to an interface that was plugged in right already."""
    mark = Mark.of(planned(STATIC))
    assert waiting(handle, mark, STATIC) == ()
    assert waiting(handle, mark, replace(STATIC, type="ovs")) == ()


@pytest.mark.parametrize(
    "change",
    [
        {"address": "10.0.1.11/24"},
        {"gateway": None},
        {"gateway6": "fd00::2"},
        {"dns_search": ()},
        {"address6": None, "gateway6": None, "dhcp6": True},
    ],
    ids=str,
)
def test_whatever_a_guest_is_to_be_told_waits_for_its_restart(
    handle: libvirt.virDomain, change: dict[str, object]
) -> None:
    """It reads its configuration when it boots; also one that an earlier operator started."""
    changed = replace(STATIC, **change)
    assert waiting(handle, Mark.of(planned(STATIC)), changed) == ("networks",)
    assert waiting(handle, marked_before(), changed) == ("networks",)


def test_gateways_that_change_places_wait_for_a_restart(handle: libvirt.virDomain) -> None:
    """Of several the first interface's is used, which the guest is told by their metrics."""
    mark = Mark.of(planned(STATIC, OTHER))
    assert waiting(handle, mark, STATIC, OTHER) == ()
    assert waiting(handle, mark, OTHER, STATIC) == ("networks",)
    without = replace(OTHER, gateway=None), Nic("default")
    assert waiting(handle, Mark.of(planned(*without)), *reversed(without)) == ()


def test_a_guest_of_an_earlier_operator_is_not_restarted(handle: libvirt.virDomain) -> None:
    """Its mark has only the word of then, whatever else of it is written anew."""
    assert waiting(handle, marked_before(), STATIC) == ()


def test_words_are_the_same_in_every_version() -> None:
    """A guest is compared with what a later operator would tell it.

    Whoever tells guests more must keep the word of those who are told the same as before, or all
    that have static addresses are restarted by an upgrade.
    """
    told = Mark.of(planned(STATIC, OTHER, Nic("default"))).told
    assert [each.word for each in told] == ["7fbe40a018a3", "d6e8cfcaa2cc", ""]
    assert [each.former for each in told] == ["808d059025c0", "3484ac82a224", ""]
    assert Mark.of(planned(Nic("management", dhcp6=True))).told[0].word == "9f094afcb1d6"
