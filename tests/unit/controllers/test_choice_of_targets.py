"""Which host a machine is sent to: one that is likely to take it before one that is not."""

from datetime import timedelta
from typing import Any

import pytest

from novacron.core.move import Move
from novacron.runtime.resource import Key, Object
from unit.controllers.office import Office

SILENT = {
    "type": "Ready",
    "status": "False",
    "reason": "HostUnreachable",
    "lastTransitionTime": "2026-11-15T11:00:00Z",
}
FENCED = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}


@pytest.fixture
def office() -> Office:
    """Hosts of which nothing is known yet."""
    return Office()


def failed(target: str, reason: str = "MigrationFailed") -> Object:
    """Return what is written of a move to a host that failed a minute before noon."""
    told = {"sourceNode": "a", "targetNode": target, "result": "Failed", "reason": reason}
    return {"migration": {**told, "endTime": "2026-11-15T11:59:00Z"}}


async def sent_to(office: Office) -> str | None:
    """Have the mover decide about the machine; return where it is to go."""
    await office.mover.reconcile(Key("n", "m"))
    move = office.kind.machine(office.machine("m")).move
    return move.target if move else None


async def comes_to_nothing(office: Office, target: str) -> None:
    """Have the move that was decided on fail, and time pass."""
    office.now += timedelta(minutes=1)
    obj: dict[str, Any] = office.machine("m")
    told = {**failed(target)["migration"], "endTime": office.now.strftime("%Y-%m-%dT%H:%M:%SZ")}
    status = {**obj["status"], "migration": told}
    metadata = {**obj["metadata"], "annotations": {}}
    written = office.paper.numbered({**obj, "metadata": metadata, "status": status})
    office.machines.seen(written)
    office.now += timedelta(minutes=1)


async def test_who_failed_to_take_it_lately_is_asked_again_after_all_others(office: Office) -> None:
    """A drain would wait for one host that will never do, for ever."""
    office.add_host("a", drain={})
    for name in ("b", "c", "d"):
        office.add_host(name)
    office.add_machine("m", "a", {}, **failed("b", "HasSnapshots"))
    order = []
    for _ in range(5):
        target = await sent_to(office)
        assert target is not None
        order.append(target)
        await comes_to_nothing(office, target)
    assert order == ["c", "d", "b", "c", "d"]


async def test_a_host_whose_cpu_will_not_do_is_not_tried_again_however_often_it_is_asked(
    office: Office,
) -> None:
    """That nobody takes the machine is written over why; and whoever waits for room is asked."""
    office.add_host("a", drain={})
    office.add_host("b")
    office.add_machine("m", "a", {}, **failed("b", "CpuIncompatible"))
    for _ in range(3):
        assert await sent_to(office) is None
        said = office.machine("m")["status"]["migration"]
        assert (said["result"], said["reason"]) == ("Refused", "NoHostFits")
        office.now += timedelta(minutes=1)


async def test_a_failure_of_long_ago_counts_no_more(office: Office) -> None:
    """Whatever it was has been mended since, or is found again."""
    office.add_host("a", drain={})
    office.add_host("b")
    office.add_host("c")
    office.add_machine("m", "a", {}, **failed("b"))
    office.now += timedelta(minutes=15)
    assert await sent_to(office) == "b"


async def test_a_machine_of_a_lost_host_begins_anew_where_its_disks_are_seen(
    office: Office,
) -> None:
    """Others would only say that they do not have them."""
    off = {"conditions": [SILENT], "ownStorageID": "nfs"}
    office.add_host("a", says=off, taints=[FENCED])
    for name, places in (("b", ["b"]), ("c", ["c"]), ("d", ["d", "nfs"])):
        office.add_host(name, says={"storageIDs": places, "ownStorageID": places[0]})
    office.add_machine("m", "a", {})
    assert await sent_to(office) == "d"


async def test_what_hosts_said_of_their_storage_may_be_wrong(office: Office) -> None:
    """So each is asked in the end; one that fails is not asked again before the others."""
    off = {"conditions": [SILENT], "ownStorageID": "nfs"}
    office.add_host("a", says=off, taints=[FENCED])
    office.add_host("b", says={"storageIDs": ["b"]})
    office.add_host("c", says={"storageIDs": ["c"]})
    office.add_machine("m", "a", {})
    assert await sent_to(office) == "b"
    await comes_to_nothing(office, "b")
    assert await sent_to(office) == "c"


async def test_snapshots_go_where_the_disks_are_seen_that_they_are_within(office: Office) -> None:
    """They would not be in copies."""
    office.add_host("a", says={"storageIDs": ["nfs"], "ownStorageID": "nfs"}, drain={})
    office.add_host("b", says={"storageIDs": ["b"]})
    office.add_host("c", says={"storageIDs": ["nfs"]})
    office.add_machine("m", "a", {}, snapshots=[{"name": "one"}])
    assert await sent_to(office) == "c"


@pytest.mark.parametrize("places", [["b"], ["b", "nfs"]])
async def test_a_guest_is_stopped_for_its_snapshots_only_where_its_disks_are_not_seen(
    office: Office, places: list[str]
) -> None:
    """They come along with a machine that is off, and whoever drains has agreed to that."""
    here = {"storageIDs": ["nfs"], "ownStorageID": "nfs"}
    office.add_host("a", says=here, drain={"stopAllowed": True})
    office.add_host("b", says={"storageIDs": places})
    office.add_machine("m", "a", {}, snapshots=[{"name": "one"}])
    assert await sent_to(office) == "b"
    assert move_of(office).live is ("nfs" in places)


async def test_a_guest_is_stopped_for_a_volume_that_it_gets_with_a_restart(office: Office) -> None:
    """It is not copied with a guest that does not have it; where it is seen it need not be."""
    rooms = [{"name": "fast", "allocatable": "1Gi", "storageID": "two"}]
    seen = {"storageIDs": ["one", "two"], "ownStorageID": "one", "storageClasses": rooms}
    office.add_host("a", says=seen, drain={"stopAllowed": True})
    office.add_host("b", says={"storageIDs": ["b"]})
    volume = {"name": "data", "id": "m.data", "size": "1Gi", "storageClass": "fast"}
    office.add_machine("m", "a", {}, volumes=[{**volume, "state": "AwaitsRestart"}])
    assert await sent_to(office) == "b"
    assert not move_of(office).live
    await comes_to_nothing(office, "b")
    office.add_host("c", says={"storageIDs": ["two"]})
    assert await sent_to(office) == "c"
    assert move_of(office).live


def move_of(office: Office) -> Move:
    """Return what was decided on."""
    move = office.kind.machine(office.machine("m")).move
    assert move is not None
    return move


async def test_a_guest_whose_snapshots_did_not_come_is_stopped_the_next_time(
    office: Office,
) -> None:
    """Nobody knows which storage the hosts see, but the move that was tried."""
    office.add_host("a", drain={"stopAllowed": True})
    office.add_host("b")
    failure = failed("b", "HasSnapshots")
    office.add_machine("m", "a", {}, snapshots=[{"name": "one"}], **failure)
    assert await sent_to(office) == "b"
    assert not move_of(office).live


async def test_disks_without_snapshots_go_wherever_there_is_room(office: Office) -> None:
    """They are copied."""
    office.add_host("a", says={"storageIDs": ["nfs"], "ownStorageID": "nfs"}, drain={})
    office.add_host("b", says={"storageIDs": ["b"]})
    office.add_host("c", says={"storageIDs": ["nfs"]})
    office.add_machine("m", "a", {})
    assert await sent_to(office) == "b"


async def test_a_host_that_others_cannot_reach_takes_nobody_in(office: Office) -> None:
    """How they do is for its owner to say."""
    office.add_host("a", drain={})
    office.add_host("b", says={"capabilities": ["LiveMigration"]})
    office.add_machine("m", "a", {})
    assert await sent_to(office) is None
    said = office.machine("m")["status"]["migration"]
    assert said["reason"] == "NoHostFits"
    assert "cannot do MigrationTarget (spec.libvirt.migration.uri" in said["message"]
    office.add_host("c", says={"capabilities": ["LiveMigration", "MigrationTarget"]})
    assert await sent_to(office) == "c"
