"""Domains and pools that come and go while somebody looks at them."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4
from xml.etree import ElementTree as ET

import libvirt

from libvirt_daemon import LibvirtDaemon
from novacron.core.machine import Observed
from unit.drivers.libvirt.hosts import created, deleted, driver_for, eventually, left_on, machine

LOOKS = 100


@contextmanager
def coming_and_going(uri: str, name: str) -> Iterator[None]:
    """Have a domain undefined and defined again, as fast as can be."""
    over = threading.Event()

    def turn() -> None:
        connection = libvirt.open(uri)
        domain = connection.lookupByName(name)
        xml = domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE)
        while not over.is_set():
            domain.undefine()
            domain = connection.defineXML(xml)
        connection.close()

    thread = threading.Thread(target=turn)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


async def test_a_domain_that_goes_during_a_look_is_none_and_no_trouble(
    host: LibvirtDaemon,
) -> None:
    """A host with a lot of coming and going must not seem to be broken."""
    driver, plan = driver_for(host), machine()
    await created(driver, plan)
    found: set[int] = set()
    with coming_and_going(host.uri, f"default.{plan.ref.name}"):
        for _ in range(LOOKS):
            found.add(len(await driver.machines("far")))
            await driver.observe(plan.ref)
            async for facts in driver.hosts():
                assert facts.name == "far"
    assert found <= {0, 1}
    await deleted(driver, plan)
    await driver.close()
    assert left_on(host) == set()


async def test_a_pool_that_was_made_anew_is_found_with_all_that_is_in_it(
    host: LibvirtDaemon,
) -> None:
    """By its old number it is not there any more, which says nothing of a machine's disks."""
    driver, plan = driver_for(host), machine()
    seen = await created(driver, plan)
    _make_pool_anew(host.uri)
    looks: list[Observed | None] = []

    async def seen_again() -> bool:
        looks.append(await driver.observe(plan.ref))
        return True

    await eventually(seen_again, "the machine is seen")
    assert looks == [seen]
    await deleted(driver, plan)
    await driver.close()
    assert left_on(host) == set()


def _make_pool_anew(uri: str) -> None:
    """Have the pool of our volumes under its name, in its place, with another UUID."""
    connection = libvirt.open(uri)
    try:
        pool = connection.storagePoolLookupByName("novacron")
        description = ET.fromstring(pool.XMLDesc())
        number = description.find("uuid")
        assert number is not None
        number.text = str(uuid4())
        pool.destroy()
        pool.undefine()
        connection.storagePoolDefineXML(ET.tostring(description, encoding="unicode")).create()
    finally:
        connection.close()
