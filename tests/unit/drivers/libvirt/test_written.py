"""What is known of a definition that was just written is what libvirt has of it."""

from dataclasses import replace

import libvirt
import pytest

from libvirt_daemon import LibvirtDaemon
from novacron.core.devices import HostDevice
from novacron.core.machine import MachinePlan, Nic, Resources
from novacron.core.volume import Volume
from novacron.drivers.libvirt.build import Builder
from novacron.drivers.libvirt.facts import Machinery
from novacron.drivers.libvirt.host import Bridged, LibvirtHost
from novacron.drivers.libvirt.look import find
from novacron.drivers.libvirt.pool import open_pool
from novacron.drivers.libvirt.seed import seed_of
from unit.drivers.libvirt.hosts import machine

NETWORKS = {
    "lan": Bridged("bridge", "br-lan"),
    "tagged": Bridged("bridge", "br-lan", 12),
    "ovs": Bridged("ovs", "ovs0", 7),
}
MEDIATED = "b1ae8bf6-38b0-4c81-9d44-78ce3f520496"
SMALL = machine()


@pytest.mark.parametrize(
    "plan",
    [
        SMALL,
        replace(SMALL, resources=Resources(3, 2048, 512)),
        replace(SMALL, nics=(Nic("default"), Nic("lan", mac="52:54:00:AA:bb:01"), Nic("tagged"))),
        replace(SMALL, nics=(Nic("ovs", address="10.1.2.3/24"),), user_data="#!/bin/sh\n<&>\n"),
        replace(SMALL, volumes=(Volume("data", 64), Volume("a-name-that-is-long-for-a-disk", 32))),
        replace(SMALL, devices=(HostDevice("0000:3B:00.1", "gpu", "10de", "20b0"),)),
        replace(SMALL, devices=(HostDevice(MEDIATED, "mdev", "10de", "A100"),)),
    ],
    ids=["small", "grows", "interfaces", "ovs", "volumes", "pci", "mdev"],
)
def test_what_was_written_is_what_is_read(host: LibvirtDaemon, plan: MachinePlan) -> None:
    """Otherwise a machine would seem to change with the first look at it."""
    connection = libvirt.open(host.uri)
    try:
        far = LibvirtHost("far", host.uri, networks=NETWORKS)
        builder = Builder(far, Machinery(connection, None), open_pool(connection, far))
        written = builder.define(plan, seed_of(plan), None)
        read = find(connection, plan.ref.uid)
        assert read is not None
        assert written.configured == read.configured
        assert read.configured.mark.shape == read.configured.shape
        builder.remove(plan.ref.uid, read)
    finally:
        connection.close()
