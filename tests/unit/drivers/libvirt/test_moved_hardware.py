"""A machine with hardware of its host moves while it is off, and gets that of the other host."""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import libvirt
import pytest

from conformance.pairs import Mover, Pair, real
from fleet import shared_fleet
from novacron.core.devices import HostDevice
from novacron.core.errors import DriverError
from novacron.core.machine import MachinePlan, Power
from novacron.core.move import MovePolicy
from novacron.drivers.libvirt.departures import Route
from novacron.drivers.libvirt.hostdev import handed_over
from novacron.drivers.libvirt.moves import ROUTE
from rights import ROOT

pytestmark = pytest.mark.skipif(not ROOT, reason="hosts of their own need root")

GPUS = {
    "a": HostDevice("0000:3b:00.0", "gpu", "nvidia", "tesla-t4"),
    "b": HostDevice("0000:af:00.0", "gpu", "nvidia", "tesla-t4"),
}


def plan(pair: Pair, host: str) -> MachinePlan:
    """Return the machine with the GPU that the host would have."""
    return replace(pair.plan(host), devices=(GPUS[host],))


def written(pair: Pair, number: int) -> frozenset[str]:
    """Return which hardware libvirt itself says that the machine gets when it is started."""
    connection = libvirt.open(shared_fleet().hosts[number].uri)
    domain = connection.lookupByUUIDString(pair.uid)
    xml = ET.fromstring(domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE))
    found = handed_over(xml.findall("devices/hostdev"))
    del domain
    connection.close()
    return found


async def sent(pair: Pair, here: Mover, there: Mover) -> None:
    """Send it from a to b, without waiting."""
    luggage = await here.pack(pair.plan("a").ref)
    destination = await there.welcome(plan(pair, "b"), luggage)
    await here.send(pair.plan("a").ref, destination, MovePolicy())


@pytest.mark.parametrize("pool", ["shared", "novacron"])
async def test_a_machine_that_is_off_gets_hardware_of_its_new_host(
    tmp_path: Path, pool: str
) -> None:
    """libvirt moves nothing that has hardware, so it travels without."""
    async with real(tmp_path, pool=pool) as pair:
        here, there = pair.connect("a"), pair.connect("b")
        await here.create(plan(pair, "a"))
        await pair.settled(here, "a")
        assert written(pair, 0) == {"0x3b/0x0000/0x0/0x00"}
        await sent(pair, here, there)
        assert await pair.settled(here, "a") is None
        await there.arrived(plan(pair, "b"), None)
        seen = await pair.settled(there, "b")
        assert seen is not None
        assert (seen.power, seen.recipe) == (Power.OFF, plan(pair, "b").recipe)
        assert written(pair, 1) == {"0xaf/0x0000/0x0/0x00"}


async def test_a_machine_that_was_not_taken_has_its_hardware_still(tmp_path: Path) -> None:
    """Whatever it was sent without."""
    async with real(tmp_path, pool="shared") as pair:
        here, there = pair.connect("a"), pair.connect("b")
        await here.create(plan(pair, "a"))
        await pair.settled(here, "a")
        before = written(pair, 0)
        luggage = await here.pack(pair.plan("a").ref)
        destination = await there.welcome(plan(pair, "b"), luggage)
        (route,) = destination.details.values()
        assert isinstance(route, Route)
        nowhere = {ROUTE: replace(route, uri="qemu+tls://127.0.0.1:1/system")}
        await here.send(pair.plan("a").ref, replace(destination, details=nowhere), MovePolicy())
        assert await pair.settled(here, "a") is not None
        with pytest.raises(DriverError):
            await here.send(pair.plan("a").ref, destination, MovePolicy())
        assert written(pair, 0) == before
