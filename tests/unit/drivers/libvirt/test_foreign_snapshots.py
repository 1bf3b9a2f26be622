"""Snapshots that somebody else took of a machine which is to move: nobody else puts them away."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import libvirt
import pytest

from conformance.pairs import Pair, real
from fleet import shared_fleet
from novacron.core.errors import Rejected
from novacron.core.machine import Power
from novacron.core.move import MovePolicy
from novacron.drivers.libvirt.domain import domain_uuid
from rights import ROOT

pytestmark = pytest.mark.skipif(not ROOT, reason="hosts of their own need root")

THEIRS = "<domainsnapshot><name>theirs</name></domainsnapshot>"


@contextmanager
def taken_by_somebody_else(pair: Pair) -> Iterator[libvirt.virDomainSnapshot]:
    """Have the machine on host a keep a snapshot that was taken with virsh."""
    outside = libvirt.open(shared_fleet().hosts[0].uri)
    domain = outside.lookupByUUIDString(domain_uuid(pair.uid))
    try:
        yield domain.snapshotCreateXML(THEIRS, 0)
    finally:
        # With one on record libvirt would not let go of the machine in the end either.
        for each in domain.listAllSnapshots():
            each.delete()
        del domain
        outside.close()


@pytest.mark.parametrize("power", list(Power))
@pytest.mark.parametrize("pool", ["shared", "novacron"])
async def test_a_machine_of_which_somebody_else_took_a_snapshot_stays_until_it_is_deleted(
    tmp_path: Path, pool: str, power: Power
) -> None:
    """Also where both hosts see its disks: libvirt sends no machine whose snapshots it knows of.

    That is told before anything is made on the other host, and it moves once the snapshot is gone.
    """
    async with real(tmp_path, pool=pool) as pair:
        here, there, plan = pair.connect("a"), pair.connect("b"), pair.plan("a")
        coming = replace(plan, ref=pair.plan("b").ref)
        await here.create(plan)
        await pair.settled(here, "a")
        await here.set_power(plan.ref, power)
        await pair.settled(here, "a")
        before = pair.left_behind()
        with taken_by_somebody_else(pair) as snapshot:
            with pytest.raises(
                Rejected, match="1 snapshots were taken of it that are not ours"
            ) as no:
                await there.welcome(coming, await here.pack(plan.ref))
            assert no.value.reason == "HasSnapshots"
            assert "virsh snapshot-delete" in str(no.value)
            assert pair.left_behind() == before
            seen = await here.observe(plan.ref)
            assert seen is not None
            assert seen.power is power
            snapshot.delete()
        destination = await there.welcome(coming, await here.pack(plan.ref))
        await here.send(plan.ref, destination, MovePolicy())
        assert await pair.settled(here, "a") is None
