"""Filters on what a host has that others may not: abilities, storage, networks, its driver."""

from functools import partial

import numpy as np

from novacron.core.driver import Capability
from novacron.core.offer import Offer, OfferKind
from novacron.scheduler.filter import Asked, Filter, Refused, have, some
from novacron.scheduler.table import HostTable, Mask

__all__ = ["OFFER_FILTERS"]


REMEDIES = {
    Offer(OfferKind.STORAGE, "*"): " in storageClasses of the Host",
    Offer(OfferKind.CAPABILITY, Capability.MIGRATION_TARGET.value): (
        " (spec.libvirt.migration.uri of the Host says how others reach it)"
    ),
}


def _without(kind: OfferKind, table: HostTable, asked: Asked) -> Mask | None:
    if not asked.machine.needs:
        return None
    needed = [offer for offer in asked.machine.needs if offer.kind == kind]
    if not needed:
        return None
    mask = np.zeros(table.size, dtype=np.bool_)
    for offer in needed:
        mask |= ~table.offering(offer)
    return mask


def _say(kind: OfferKind, words: str, asked: Asked, refused: Refused) -> str:
    missing = {
        offer
        for host in refused.hosts
        for offer in asked.machine.needs
        if offer.kind == kind and host.offers.isdisjoint((offer, offer.any))
    }
    remedies = {REMEDIES.get(each) or REMEDIES.get(each.any) or "" for each in missing}
    names = some(each.name for each in missing)
    return f"{words.format(have=have(refused))} {names}{''.join(sorted(remedies))}"


OFFER_FILTERS = tuple(
    Filter(kind.value, partial(_without, kind), partial(_say, kind, words))
    for kind, words in (
        (OfferKind.DRIVER, "{have} another driver than"),
        (OfferKind.CAPABILITY, "cannot do"),
        (OfferKind.STORAGE, "{have} no storage class"),
        (OfferKind.NETWORK, "{have} no network"),
    )
)
