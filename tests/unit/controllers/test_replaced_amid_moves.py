"""Machines whose records somebody took away while they were on their way, and who asks then."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from novacron.controllers.adapter import MachineController
from novacron.controllers.prospects import Prospects
from novacron.controllers.reconciler import MachineReconciler
from novacron.runtime.resource import Key
from novacron.runtime.writer import Writer
from unit.controllers.office import Office
from unit.controllers.pair import SLOW, Hosts

MIGRATE_TO, CANCEL = "novacron.io/migrate-to", "novacron.io/migrate-cancel"
RECORD = "novacron.io/move"
BEGUN = {"id": "7", "sourceNode": "a", "targetNode": "b", "mode": "Live", "progress": 0}
KEY = Key("n", "m")


@pytest.fixture
async def hosts(tmp_path: Path) -> Hosts:
    """A machine that has just set off from host a to host b."""
    hosts = Hosts(tmp_path)
    hosts.machine = replace(hosts.machine, uid="uid-m", namespace="n", name="m")
    await hosts.settle()
    await hosts.set_off()
    return hosts


@pytest.fixture
def office() -> Office:
    """Where it is on its way by its status alone, among three hosts."""
    office = Office()
    for name in "abc":
        office.add_host(name)
    office.add_machine("m", "a", {}, migration=BEGUN)
    return office


def controller(office: Office, hosts: Hosts) -> MachineController:
    """Return who takes the machine along."""

    async def nowhere(_: str) -> None:
        """Nothing exists anywhere that is not recorded."""

    return MachineController(
        office.kind,
        Writer(office.mover.writer.client, office.machines, "machines"),
        MachineReconciler(hosts, now=lambda: hosts.now),
        office.events,
        lambda: hosts.now,
        nowhere,
        lambda _host, _seen: None,
        Prospects(office.ledger, lambda _: None, soon=lambda _: None),
    )


def notes(office: Office) -> dict[str, str]:
    """Return the annotations of the machine."""
    found: dict[str, str] = office.machine("m")["metadata"]["annotations"]
    return found


def ask(office: Office, **words: str) -> None:
    """Write annotations as kubectl would; our finalizer is there."""
    obj = office.machine("m")
    asked = {f"novacron.io/{name.replace('_', '-')}": text for name, text in words.items()}
    metadata = obj["metadata"] | {
        "annotations": notes(office) | asked,
        "finalizers": [office.kind.finalizer],
    }
    office.machines.seen(office.paper.numbered({**obj, "metadata": metadata}))


async def until_over(office: Office, hosts: Hosts) -> dict[str, Any]:
    """Have the machine's own controller look until the move has ended; return what it says."""
    controls = controller(office, hosts)
    for _ in range(20):
        await controls.reconcile(KEY)
        migration: dict[str, Any] = office.machine("m")["status"]["migration"]
        if "result" in migration and RECORD not in notes(office):
            return migration
        hosts.now += SLOW / 2
    raise AssertionError(f"it never ends: {office.machine('m')}")


async def test_what_is_asked_for_after_a_move_was_cancelled_is_not_cancelled_with_it(
    office: Office, hosts: Hosts
) -> None:
    """Nothing but the status tells of the move, and whose cancellation it is."""
    ask(office, migrate_cancel="true", migrate_to="c")
    assert (await until_over(office, hosts))["result"] == "Cancelled"
    await office.mover.reconcile(KEY)
    assert RECORD in notes(office)
    assert '"target":"c"' in notes(office)[RECORD]
    assert not {MIGRATE_TO, CANCEL} & notes(office).keys()


async def test_a_request_that_such_a_move_has_met_is_answered_by_it(
    office: Office, hosts: Hosts
) -> None:
    """It would be refused, because the machine is there by then."""
    ask(office, migrate_to="b")
    assert (await until_over(office, hosts))["result"] == "Succeeded"
    assert MIGRATE_TO not in notes(office)
    await office.mover.reconcile(KEY)
    assert office.machine("m")["status"]["migration"]["result"] == "Succeeded"


async def test_nothing_is_written_for_a_move_about_which_nobody_asks(
    office: Office, hosts: Hosts
) -> None:
    """What its owner wants by now is found by there being no record of what was wanted before."""
    ask(office)
    await controller(office, hosts).reconcile(KEY)
    assert notes(office) == {}
    assert (await until_over(office, hosts))["result"] == "Succeeded"
