"""The process that is alone."""

import asyncio

from novacron.runtime.ownership import Ownership, Sole
from novacron.runtime.resource import Key

KEY = Key("default", "vm")


async def test_a_sole_process_owns_everything_between_its_hand_overs() -> None:
    """What is written for several processes works for one without leases."""
    sole = Sole()
    owner: Ownership = sole
    told: list[tuple[str, str, bool]] = []

    async def gained(claim: str) -> None:
        told.append(("gained", claim, owner.owns(KEY)))

    async def drain(claim: str) -> None:
        told.append(("drain", claim, owner.owns(KEY)))

    sole.gained, sole.drain = gained, drain
    sole.begun = lambda claim: told.append(("begun", claim, owner.owns(KEY)))
    running = asyncio.create_task(owner.run())
    await asyncio.sleep(0)
    assert owner.leader
    assert owner.held == {owner.claim_for(KEY)} == {"leader"}
    owner.stop()
    await running
    assert not owner.held
    assert told == [
        ("gained", "leader", False),
        ("begun", "leader", True),
        ("drain", "leader", False),
    ]
