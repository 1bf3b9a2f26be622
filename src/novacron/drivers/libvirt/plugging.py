"""Interfaces of a running guest that are plugged in and pulled out while it runs. Blocks."""

import re
from collections.abc import Iterable
from xml.etree import ElementTree as ET

import libvirt

from novacron.drivers.libvirt.errors import sentence
from novacron.drivers.libvirt.interfaces import Plugged, interface
from novacron.drivers.libvirt.look import Domain

__all__ = ["plug_in", "pull_out"]

NO_SLOT = re.compile("no more available PCI", re.IGNORECASE)
# Somebody else pulled it, or it was asked for before and the guest has not let go of it yet.
LEAVING = frozenset(
    {
        libvirt.VIR_ERR_DEVICE_MISSING,
        libvirt.VIR_ERR_OPERATION_FAILED,
        libvirt.VIR_ERR_OPERATION_INVALID,
    }
)


def plug_in(domain: Domain, wanted: Iterable[Plugged]) -> None:
    """Plug in what a running guest does not have; what has no slot left comes with a restart."""
    if domain.running is None:
        return
    has = {each.mac for each in domain.running.plugged}
    for each in wanted:
        if each.mac in has:
            continue
        try:
            domain.handle.attachDeviceFlags(_xml(each), libvirt.VIR_DOMAIN_AFFECT_LIVE)
        except libvirt.libvirtError as error:
            if NO_SLOT.search(sentence(error)):
                return
            raise


def pull_out(domain: Domain, wanted: Iterable[Plugged]) -> None:
    """Have a running guest let go of what is not wanted; one that does not needs a restart."""
    if domain.running is None:
        return
    stay = {each.mac for each in wanted}
    for each in domain.running.plugged:
        if each.mac in stay:
            continue
        try:
            domain.handle.detachDeviceFlags(_xml(each), libvirt.VIR_DOMAIN_AFFECT_LIVE)
        except libvirt.libvirtError as error:
            if error.get_error_code() not in LEAVING:
                raise


def _xml(plugged: Plugged) -> str:
    return ET.tostring(interface(plugged.mac, plugged.port), encoding="unicode")
