"""Who looks at a machine's console or screen, and changes nothing by that."""

import libvirt
import pytest

from libvirt_daemon import LibvirtDaemon
from novacron.core.errors import Busy
from novacron.drivers.libvirt import LibvirtDriver
from novacron.drivers.libvirt.travel import is_marked_as_sent, marked_as_sent
from unit.drivers.libvirt.hosts import created, deleted, domain_of, machine


async def test_a_guest_that_is_up_to_be_sent_stays_so_whoever_looks_at_it(
    driver: LibvirtDriver, host: LibvirtDaemon
) -> None:
    """It is sent, or taken home, by the process that has the machine's lease, and no other one."""
    plan = machine()
    await created(driver, plan)
    with domain_of(host, plan) as domain:
        domain.connect().defineXML(marked_as_sent(domain.XMLDesc()))
        domain.createWithFlags(libvirt.VIR_DOMAIN_START_PAUSED)
        written = domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE)
        await driver.display(plan.ref)
        (await driver.open_display(plan.ref)).close()
        await (await driver.console(plan.ref)).close()
        assert domain.isActive()
        assert is_marked_as_sent(domain.XMLDesc())
        assert domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE) == written
    await deleted(driver, plan)


async def test_a_machine_that_is_gone_has_neither(driver: LibvirtDriver) -> None:
    """Somebody removed it since it was looked up."""
    ref = machine().ref
    for look in (driver.display, driver.open_display, driver.console):
        with pytest.raises(Busy, match="is not on host far any more"):
            await look(ref)
