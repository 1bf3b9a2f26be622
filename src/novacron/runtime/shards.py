"""Which shard an object falls into, and which process should hold which shard.

Pure functions: every process computes the same answer from the same leases, so nobody has to
be asked, and where two saw different leases the compare-and-swap on the claim decides.
"""

from collections.abc import Collection, Mapping
from hashlib import blake2b

from novacron.runtime.resource import Key

__all__ = ["LEADER", "assign", "claim_for", "claim_names"]

LEADER = "leader"


def claim_names(shards: int) -> tuple[str, ...]:
    """Return all that can be claimed: leadership, and the shards when there are several."""
    if shards < 1:
        raise ValueError(f"there is at least one shard, not {shards}")
    return (LEADER, *shard_names(shards))


def shard_names(shards: int) -> tuple[str, ...]:
    """Return the claims that keys are divided among besides leadership."""
    return tuple(_shard(number) for number in range(shards)) if shards > 1 else ()


def claim_for(key: Key, shards: int) -> str:
    """Return the claim under which an object is worked on: its shard, or leadership alone."""
    if shards == 1:
        return LEADER
    # Not hash(): that differs from process to process.
    digest = blake2b(f"{key.namespace}/{key.name}".encode(), digest_size=8).digest()
    return _shard(int.from_bytes(digest) % shards)


def _shard(number: int) -> str:
    return f"shard-{number}"


def assign(claims: Mapping[str, str | None], members: Collection[str]) -> dict[str, str]:
    """Return who should hold which claim, given who holds them now (None: free).

    All members get the same number, give or take one. As little as possible moves: who has
    most keeps the odd ones. A claim that is absent from the answer should be let go by its
    holder, or waits until a holder who is no member does so.
    """
    held = {member: [c for c, who in claims.items() if who == member] for member in members}
    shares = _fair_shares({member: len(its) for member, its in held.items()}, len(claims))
    plan = {c: member for member, its in held.items() for c in its[: shares[member]]}
    # The poorest first, for there may be less to give away now than all should have in the end.
    wanting = sorted((n, m) for m in members for n in range(len(held[m]), shares[m]))
    free = [claim for claim, who in claims.items() if who is None]
    return plan | {claim: member for claim, (_, member) in zip(free, wanting, strict=False)}


def _fair_shares(counts: Mapping[str, int], total: int) -> dict[str, int]:
    share, odd = divmod(total, max(1, len(counts)))
    richest_first = sorted(counts, key=lambda member: (-counts[member], member))
    return {member: share + (rank < odd) for rank, member in enumerate(richest_first)}
