"""Brings an image to a host, until somebody ends it. Run by a test: URI, address, checksum."""

import sys

import libvirt

from novacron.core.image import PullPolicy
from novacron.drivers.libvirt import LibvirtHost
from novacron.drivers.libvirt.pool import open_pool
from novacron.drivers.libvirt.progress import Progress
from novacron.drivers.libvirt.stock import Stock
from unit.drivers.libvirt.sources import located

if __name__ == "__main__":
    uri, address, checksum = sys.argv[1:]
    pool = open_pool(libvirt.open(uri), LibvirtHost("host", uri, pool="resumed"))
    image = located(address, checksum or None)
    Stock().ensure(pool, image, PullPolicy.IF_NOT_PRESENT, Progress())
