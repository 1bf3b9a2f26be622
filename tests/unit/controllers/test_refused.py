"""Machines that the host which they were given to has no room for after all."""

from collections.abc import Collection

import pytest

from machines import virtual_machine
from novacron.core.errors import Unreachable
from novacron.runtime.resource import Key, Object
from unit.controllers.office import Office

M = Key("n", "m")


class Desk:
    """The placer, before hosts of which one is silent, and whom it asks."""

    def __init__(self, office: Office, silent: str) -> None:
        self.office, self.silent = office, silent
        self.asked: list[Collection[str] | None] = []
        self.there: str | None = None
        office.placer.locate = self.locate

    async def locate(self, uid: str, among: Collection[str] | None) -> str | None:
        """Look for a machine, as whoever watches the hosts does."""
        del uid
        self.asked.append(among)
        if self.silent in (among or ("a", "b", "c")):
            raise Unreachable(f"host {self.silent} does not answer")
        return self.there

    async def decide(self) -> str | None:
        """Return where the machine is to be, after the placer has looked at it."""
        await self.office.placer.reconcile(M)
        holding = self.office.kind.holding(self.office.machine("m"))
        return holding.host if holding else None

    def refuse(self, host: str) -> None:
        """Have a host turn the machine away."""
        obj = self.office.machine("m")
        told = {"type": "Placed", "status": "False", "reason": "HostFull", "message": "is full"}
        status = {"refusals": 1, "refusedHosts": [host], "conditions": [told]}
        self.office.machines.seen(self.office.paper.numbered({**obj, "status": status}))


def asked_for() -> Object:
    body = virtual_machine("m", "n", cpu=2)
    body["metadata"] |= {"uid": "m", "annotations": {}}
    return {**body, "status": {}}


@pytest.fixture
async def desk() -> Desk:
    """A machine that was given to host a, which refuses it, and a host c that is silent."""
    office = Office()
    for name in ("a", "b", "c"):
        office.add_host(name, answers=name != "c", unschedulable=name == "b")
    office.machines.seen(office.paper.numbered(asked_for()))
    found = Desk(office, "c")
    assert await found.decide() == "a"
    office.add_host("b")
    found.refuse("a")
    return found


async def test_a_silent_host_that_never_had_it_keeps_no_machine_from_going_on(desk: Desk) -> None:
    """Whoever placed it knows that it can be nowhere but where it was refused."""
    assert await desk.decide() is None
    assert await desk.decide() == "b"
    assert desk.asked == [("a",)]


async def test_one_that_is_there_all_the_same_is_found(desk: Desk) -> None:
    """What a host said and what it has may differ for a moment."""
    desk.there = "a"
    assert await desk.decide() is None
    assert desk.office.machine("m")["status"]["conditions"][0]["reason"] == "FoundOnHost"
    assert await desk.decide() == "a"
    assert desk.asked == [("a",)] * 2
    assert "found on host a" in str(desk.office.machine("m")["metadata"]["annotations"])


async def test_all_hosts_that_it_was_given_to_are_asked(desk: Desk) -> None:
    """A record that somebody takes away says no more where the machine may have been made."""
    assert await desk.decide() is None
    assert await desk.decide() == "b"
    obj = desk.office.machine("m")
    bare = {**obj, "metadata": {**obj["metadata"], "annotations": {}}}
    desk.office.machines.seen(desk.office.paper.numbered(bare))
    await desk.decide()
    assert desk.asked[-1] == ("a", "b")


async def test_a_new_leader_asks_all_hosts_and_remembers_who_refused(desk: Desk) -> None:
    """It cannot tell what was decided before; once all answer, the full host is not asked again."""
    later = Office()
    for name in ("a", "b", "c"):
        later.add_host(name, answers=name != "c")
    later.machines.seen(later.paper.numbered(desk.office.machine("m")))
    desk = Desk(later, "c")
    assert await desk.decide() is None
    assert desk.asked == [None]
    status = later.machine("m")["status"]
    assert status["refusedHosts"] == ["a"]
    assert "delete the Host if there is no such one" in status["conditions"][0]["message"]
    desk.silent = ""
    assert await desk.decide() is None
    assert await desk.decide() == "b"
