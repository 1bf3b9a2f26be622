"""Guests that take longer to bring their file systems to rest than libvirt waits for it."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import libvirt
import libvirt_qemu
import pytest

from inside_guest import agent_answers, file_systems, inside
from libvirt_daemon import LibvirtDaemon
from novacron.core.snapshot import SnapshotOrder
from novacron.drivers.libvirt import LibvirtDriver, at_rest
from novacron.drivers.libvirt import snapshot_record as on_record
from novacron.drivers.libvirt.look import Domain
from unit.drivers.libvirt.hosts import deleted, domain_of, eventually, running

# What the guest has yet to write takes some twenty seconds at this pace.
DIRTY = "dd if=/dev/zero of=/root/{name} bs=1M count=8 2>/dev/null"
SLOW = {"write_bytes_sec": 400 * 1024}


class Silence(libvirt.libvirtError):
    """What libvirt says of an agent that does not answer in time."""

    def __init__(self) -> None:
        super().__init__("Guest agent is not responding")

    def get_error_code(self) -> int:
        return int(libvirt.VIR_ERR_AGENT_UNRESPONSIVE)


class Guest:
    """A guest whose agent does not answer so many times."""

    def __init__(self, *, agent: bool = True, pings: int = 0, freezes: int = 0, thaws: int = 0):
        self.silences = {"ping": pings, "freeze": freezes, "thaw": thaws}
        self.agent = agent
        self.asked: list[str] = []

    def ask(self, what: str) -> None:
        self.asked.append(what)
        self.silences[what] -= 1
        if self.silences[what] >= 0:
            raise Silence

    def agentSetResponseTimeout(self, seconds: int) -> None:  # noqa: N802 - libvirt's name
        """Take note of it."""

    def fsFreeze(self) -> None:  # noqa: N802 - libvirt's name
        self.ask("freeze")

    def fsThaw(self) -> None:  # noqa: N802 - libvirt's name
        self.ask("thaw")

    @property
    def domain(self) -> Domain:
        return cast("Domain", SimpleNamespace(handle=self, running=self))


@pytest.fixture(autouse=True)
def _hurry(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have nobody wait for guests that are none."""
    if "host" in request.fixturenames:
        return

    def pinged(guest: Guest, *_: Any) -> str:
        guest.ask("ping")
        return '{"return": {}}'

    monkeypatch.setattr(libvirt_qemu, "qemuAgentCommand", pinged)
    monkeypatch.setattr(at_rest, "read", lambda _: None)
    monkeypatch.setattr(at_rest, "AGAIN_SECONDS", 0)


def test_a_guest_is_at_rest_for_a_moment() -> None:
    """Otherwise the tests below say nothing."""
    guest, lingering = Guest(), list[str]()
    with at_rest.at_rest(guest.domain, lambda: lingering.append("lingers")) as quiesced:
        assert guest.asked == ["ping", "freeze"]
    assert quiesced
    assert guest.asked == ["ping", "freeze", "thaw"]
    assert lingering == []


def test_one_that_freezes_too_late_is_thawed_in_the_end() -> None:
    """Its agent hears nothing else before it has frozen."""
    guest = Guest(freezes=1, thaws=3)
    lingering = list[int]()
    with at_rest.at_rest(guest.domain, lambda: lingering.append(len(guest.asked))) as quiesced:
        pass
    assert not quiesced
    assert lingering[0] == len(["ping", "freeze", "thaw"]), "others may be served from then on"
    assert guest.asked == ["ping", "freeze", *["thaw"] * 4]


def test_nobody_is_done_with_one_that_may_still_freeze(monkeypatch: pytest.MonkeyPatch) -> None:
    """What tells that it is to be thawed stays, so that whoever looks next does it."""
    monkeypatch.setattr(at_rest, "THAW_SECONDS", 0)
    guest = Guest(freezes=1, thaws=9)
    with pytest.raises(at_rest.MaybeFrozen), at_rest.at_rest(guest.domain):
        pass


def test_an_agent_that_is_mute_already_is_not_told_to_freeze() -> None:
    """It would, when it wakes up and nobody knows any more."""
    guest = Guest(pings=1)
    with at_rest.at_rest(guest.domain) as quiesced:
        pass
    assert not quiesced
    assert guest.asked == ["ping"]


@pytest.mark.parametrize("agent", [True, False])
def test_a_guest_is_held_to_be_frozen_only_where_an_agent_is(*, agent: bool) -> None:
    """One that is not there freezes nothing, and never answers."""
    guest = Guest(agent=agent, thaws=1)
    if agent:
        with pytest.raises(at_rest.MaybeFrozen):
            at_rest.thaw(guest.domain)
    else:
        at_rest.thaw(guest.domain)


@pytest.mark.full
async def test_a_guest_with_a_slow_disk_is_not_left_frozen(
    driver: LibvirtDriver, host: LibvirtDaemon
) -> None:
    """Neither by who takes a snapshot nor by who finds what another one began."""
    plan = await running(driver)
    with domain_of(host, plan) as domain:

        async def speaks() -> bool:
            return agent_answers(domain)

        async def taken() -> bool:
            await driver.take_snapshot(plan.ref, SnapshotOrder("slow"))
            return [each.name for each in await driver.snapshots(plan.ref)] == ["slow"]

        async def cleared() -> bool:
            await driver.snapshots(plan.ref)
            return domain.snapshotListNames() == ["slow"]

        await eventually(speaks, "its agent answers")
        domain.setBlockIoTune("vda", SLOW, libvirt.VIR_DOMAIN_AFFECT_LIVE)
        inside(domain, DIRTY.format(name="first"))
        await eventually(taken, "it has a snapshot", 120)
        assert file_systems(domain) == "thawed"

        inside(domain, DIRTY.format(name="second"))
        on_record.write(domain, "half", on_record.Note(), datetime.now(UTC))
        domain.agentSetResponseTimeout(1)
        with pytest.raises(libvirt.libvirtError):
            domain.fsFreeze()  # as somebody did who was killed then
        await eventually(cleared, "what was begun is taken away", 120)
        assert file_systems(domain) == "thawed"
    await deleted(driver, plan)
