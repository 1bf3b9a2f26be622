"""What is known of a definition that was just written is what libvirt has of it."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import libvirt
import pytest

from libvirt_daemon import LibvirtDaemon
from novacron.core.devices import HostDevice
from novacron.core.machine import MachinePlan, Nic, Resources
from novacron.core.volume import Volume
from novacron.drivers.libvirt.build import Builder
from novacron.drivers.libvirt.domain import Draft
from novacron.drivers.libvirt.facts import Machinery
from novacron.drivers.libvirt.host import Bridged, LibvirtHost
from novacron.drivers.libvirt.look import find
from novacron.drivers.libvirt.pool import open_pool
from novacron.drivers.libvirt.seed import seed_of
from novacron.drivers.libvirt.spelling import Spelling
from novacron.drivers.libvirt.writing import Writing
from unit.drivers.libvirt.hosts import machine

NETWORKS = {
    "lan": Bridged("bridge", "br-lan"),
    "tagged": Bridged("bridge", "br-lan", 12),
    "ovs": Bridged("ovs", "ovs0", 7),
}
MEDIATED = "b1ae8bf6-38b0-4c81-9d44-78ce3f520496"
SMALL = machine()


PLANS = {
    "small": SMALL,
    "grows": replace(SMALL, resources=Resources(3, 2048, 512)),
    "interfaces": replace(
        SMALL, nics=(Nic("default"), Nic("lan", mac="52:54:00:AA:bb:01"), Nic("tagged"))
    ),
    "ovs": replace(SMALL, nics=(Nic("ovs", address="10.1.2.3/24"),), user_data="#!/bin/sh\n<&>\n"),
    "volumes": replace(
        SMALL, volumes=(Volume("data", 64), Volume("a-name-that-is-long-for-a-disk", 32))
    ),
    "pci": replace(SMALL, devices=(HostDevice("0000:3B:00.1", "gpu", "10de", "20b0"),)),
    "mdev": replace(SMALL, devices=(HostDevice(MEDIATED, "mdev", "10de", "A100"),)),
}


@pytest.fixture
def builder(host: LibvirtDaemon) -> Iterator[Builder]:
    """One who was never on this host before."""
    connection = libvirt.open(host.uri)
    far = LibvirtHost("far", host.uri, networks=NETWORKS)
    yield Builder(far, Machinery(connection, None), open_pool(connection, far))
    connection.close()


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_what_was_written_is_what_is_read(builder: Builder, plan: MachinePlan) -> None:
    """Otherwise a machine would seem to change with the first look at it."""
    require_written_as_read(builder, plan)
    builder.remove(plan.ref.uid, find(builder.connection, plan.ref.uid))


@pytest.mark.parametrize("kind", [each for each in PLANS if each != "ovs"])
def test_the_third_of_a_kind_is_written_without_a_question(
    builder: Builder, kind: str, asked: list[MachinePlan]
) -> None:
    """What libvirt makes of it is known by then, also of one with a name that is in many words."""
    ref = replace(machine().ref, name="vol", namespace="none")
    plans = [replace(PLANS[kind], ref=each) for each in (machine().ref, machine().ref, ref)]
    for each in plans:
        require_written_as_read(builder, each)
    assert asked == plans[:2]
    for each in plans:
        builder.remove(each.ref.uid, find(builder.connection, each.ref.uid))


def test_what_libvirt_makes_anew_each_time_is_asked_for(
    builder: Builder, asked: list[MachinePlan]
) -> None:
    """It gives every port of Open vSwitch a number of its own."""
    plans = [replace(PLANS["ovs"], ref=machine().ref) for _ in range(4)]
    for each in plans:
        require_written_as_read(builder, each)
        builder.remove(each.ref.uid, find(builder.connection, each.ref.uid))
    assert asked == plans


def test_those_of_other_kinds_are_asked_about(builder: Builder, asked: list[MachinePlan]) -> None:
    """Each of these differs from the others in something that libvirt may have its own word for."""
    for plan in [*PLANS.values()] * 2:
        again = replace(plan, ref=machine().ref)
        require_written_as_read(builder, again)
        builder.remove(again.ref.uid, find(builder.connection, again.ref.uid))
    assert len(asked) == 2 * len(PLANS)


def test_what_repeats_the_name_of_a_machine_is_never_foreseen() -> None:
    """The next machine would be foreseen with another one's name in it."""
    spelling = Spelling()
    for name in "aab":
        draft = Draft(name, "uuid", "<domain>", "<devices/></domain>")
        text = f"<domain><name>{name}</name><channel path='/run/{name}/0'/></domain>"
        assert spelling.foreseen(draft, ("uuid",)) is None
        spelling.learn(draft, ("uuid",), text)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[MachinePlan]:
    """The machines of which libvirt is asked what it made of them."""
    plans: list[MachinePlan] = []
    changed = Writing.changed

    def noted(writing: Writing, plan: MachinePlan, *rest: Any, **named: Any) -> Any:
        plans.append(plan)
        return changed(writing, plan, *rest, **named)

    monkeypatch.setattr(Writing, "changed", noted)
    return plans


def require_written_as_read(builder: Builder, plan: MachinePlan) -> None:
    """Write a machine down and compare what is known of it with what libvirt has."""
    written = builder.define(plan, seed_of(plan), None)
    read = find(builder.connection, plan.ref.uid)
    assert read is not None
    assert written.configured == read.configured
    assert read.configured.mark.shape == read.configured.shape
    assert written.configured.shape == read.configured.shape
