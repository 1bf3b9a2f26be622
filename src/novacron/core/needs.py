"""What a machine needs of a host beside room: networks, and what it is to be able to do."""

from collections.abc import Sequence

from novacron.core.driver import Capability
from novacron.core.hooks import NO_HOOKS, Hooks
from novacron.core.machine import Nic
from novacron.core.network import network_need
from novacron.core.offer import Offer, OfferKind
from novacron.core.snapshot import SnapshotWishes

__all__ = ["needs_of"]


def needs_of(nics: Sequence[Nic], hooks: Hooks, snapshots: SnapshotWishes) -> frozenset[Offer]:
    """Return what a host must offer to a machine with these interfaces, hooks and snapshots."""
    networks = {need for nic in nics if (need := network_need(nic)) is not None}
    needs = {Offer(OfferKind.NETWORK, need) for need in networks}
    if hooks != NO_HOOKS:
        needs.add(Offer(OfferKind.CAPABILITY, Capability.GUEST_COMMANDS.value))
    if snapshots.policy or snapshots.wanted:
        needs.add(Offer(OfferKind.CAPABILITY, Capability.SNAPSHOTS.value))
    return frozenset(needs)
