"""Domains that come and go while somebody looks at all of them."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import libvirt

from libvirt_daemon import LibvirtDaemon
from unit.drivers.libvirt.hosts import created, deleted, driver_for, left_on, machine

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
