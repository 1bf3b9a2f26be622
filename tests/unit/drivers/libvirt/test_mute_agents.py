"""Agents of many guests that are connected and say nothing: a look at all does not wait for all."""

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import libvirt
import pytest

from novacron.core.machine import MachinePlan, MachineRef, Nic, Resources
from novacron.drivers.libvirt import LibvirtDriver, census
from novacron.drivers.libvirt.defined import Defined
from novacron.drivers.libvirt.hearing import Hearing
from novacron.drivers.libvirt.interfaces import Plugged, mac_of
from novacron.drivers.libvirt.look import Domain, Known
from novacron.drivers.libvirt.mark import Mark
from novacron.drivers.libvirt.ports import Port

NIC = Nic("wide")
LOOK_SECONDS = 60


@dataclass
class Host:
    """A host whose guests' agents take a second each, by its own clock."""

    guests: int
    speak: bool = False
    now: float = 0.0
    asked: list[str] = field(default_factory=list)

    def domains(self, *_: object, **__: object) -> list[Domain]:
        """Return all guests."""
        return [self._domain(f"uid-{number:02}") for number in range(self.guests)]

    def _domain(self, uid: str) -> Domain:
        size = Resources(1, 192, 256)
        plan = MachinePlan(MachineRef(uid, "default", uid, "far"), size, "i", (NIC,))
        plugged = (Plugged(mac_of(uid, NIC), Port("bridge", "br0")),)
        written = Defined.written(plan, uid, "seed", plugged, Mark.of(plan), "<domain/>")
        listening = replace(written, agent=True)
        handle = cast("libvirt.virDomain", Guest(self, uid))
        running = libvirt.VIR_DOMAIN_RUNNING
        return Domain(handle, listening, listening, running, 1, without_snapshots=True)

    def look(self, hearing: Hearing) -> dict[str, tuple[str, ...]]:
        """Look at all; return the addresses that are told of each."""
        self.asked.clear()
        pool = SimpleNamespace(names=frozenset)
        storage = SimpleNamespace(files=lambda _: frozenset())
        builder: Any = SimpleNamespace(
            connection=None, pool=pool, storage=storage, host=SimpleNamespace(name="far")
        )
        meter: Any = SimpleNamespace(read=lambda _: {}, states={})
        found = census.look_at_all(builder, meter, Known(hearing=hearing), {})
        return {each.uid: each.addresses for each in found.machines}


@dataclass
class Guest:
    """A guest of such a host."""

    host: Host
    uid: str

    def agentSetResponseTimeout(self, seconds: int) -> None:  # noqa: N802 - libvirt's name
        """Take note of it."""

    def interfaceAddresses(self, source: int) -> dict[str, Any]:  # noqa: N802 - libvirt's name
        """Answer after a second, or give up."""
        del source
        self.host.now += 1
        self.host.asked.append(self.uid)
        if not self.host.speak:
            raise libvirt.libvirtError("Guest agent is not responding")
        return {"eth0": {"hwaddr": mac_of(self.uid, NIC), "addrs": [{"addr": "10.0.0.7"}]}}


@pytest.fixture
def mute(monkeypatch: pytest.MonkeyPatch) -> Host:
    """A host with more such guests than a look has seconds."""
    found = Host(LOOK_SECONDS + 10)
    monkeypatch.setattr(census, "read_all", found.domains)
    return found


def test_a_look_does_not_wait_for_all_agents_that_are_mute(mute: Host) -> None:
    """Else a host with a minute's worth of them counts as unreachable, for as long as it has."""
    told = mute.look(Hearing(lambda: mute.now))
    assert mute.now < LOOK_SECONDS / 2
    assert len(told) == mute.guests


def test_every_agent_is_asked_in_its_turn(mute: Host) -> None:
    """Nobody waits for ever who is behind the others."""
    hearing, asked = Hearing(lambda: mute.now), list[str]()
    for _ in range(7):
        mute.look(hearing)
        asked += mute.asked
        hearing = hearing.following({each.uid for each in mute.domains()})
    assert sorted(asked) == [each.uid for each in mute.domains()]


def test_of_who_was_not_asked_the_addresses_of_before_are_told(mute: Host) -> None:
    """They are most likely the same, and a guest without any would be news to everybody."""
    hearing, mute.speak = Hearing(lambda: mute.now), True
    for _ in range(7):
        mute.look(hearing)
        hearing = hearing.following({each.uid for each in mute.domains()})
    assert set(mute.look(hearing).values()) == {("10.0.0.7",)}
    assert len(mute.asked) < mute.guests
    assert not hearing.following(()).before, "of who is gone nothing is remembered"


async def test_each_look_of_a_driver_goes_on_where_the_last_one_ended(
    driver: LibvirtDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or each would begin with the same ones."""
    hearings: list[Hearing] = []

    def look(_: object, __: object, known: Known, ___: object) -> census.Census:
        assert known.hearing is not None
        hearings.append(known.hearing)
        known.hearing._late.append("uid-9")
        return census.Census([], {}, ())

    monkeypatch.setattr("novacron.drivers.libvirt.driver.look_at_all", look)
    await driver.machines("far")
    await driver.machines("far")
    assert [each.first for each in hearings] == [(), ("uid-9",)]


def test_who_is_mute_is_asked_by_looks_at_all_alone(mute: Host) -> None:
    """A look at a single one would keep a thread of its host waiting, each second anew."""
    hearing = Hearing(lambda: mute.now)
    mute.look(hearing)
    asked = set(mute.asked)
    mute.look(hearing.until_next())
    assert not asked.intersection(mute.asked)
    mute.look(hearing.following([f"uid-{number:02}" for number in range(mute.guests)]))
    assert mute.asked


def test_who_speaks_is_heard_by_every_look(mute: Host) -> None:
    """However long it takes."""
    mute.guests, mute.speak = 3, True
    hearing = Hearing(lambda: mute.now)
    mute.look(hearing)
    assert set(mute.look(hearing.until_next()).values()) == {("10.0.0.7",)}
    assert len(mute.asked) == 3
