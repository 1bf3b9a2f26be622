"""Filters on the machines a host has already: whom a machine must be near to or apart from."""

import numpy as np

from novacron.core.affinity import MachineTerm
from novacron.scheduler.filter import Asked, Filter, Refused, have, lack
from novacron.scheduler.nearness import Nearness
from novacron.scheduler.table import HostTable, Mask

__all__ = ["NEAR_FILTERS"]


def _alone(near: Nearness) -> Mask:
    met = near.known if near.first else near.known & (near.machines > 0)
    return ~met


def _too_far(_: HostTable, asked: Asked) -> Mask | None:
    if asked.company is None or not asked.company.near:
        return None
    mask = np.zeros_like(asked.company.near[0].known)
    for near in asked.company.near:
        mask |= _alone(near)
    return mask


def _say_too_far(asked: Asked, refused: Refused) -> str:
    assert asked.company is not None
    near = next(each for each in asked.company.near if _alone(each)[refused.rows].any())
    if not near.known[refused.rows].any():
        return f"{lack(refused)} label {near.term.topology}, which podAffinity goes by"
    return f"{have(refused)} no {near.term}{_where(near.term, refused)}"


def _too_near(_: HostTable, asked: Asked) -> Mask | None:
    return _any(asked.company.apart) if asked.company else None


def _say_too_near(asked: Asked, refused: Refused) -> str:
    assert asked.company is not None
    near = _first(asked.company.apart, refused)
    where = _where(near.term, refused)
    return f"{have(refused)} {near.term}{where}, which it must be apart from"


def _unwelcome(_: HostTable, asked: Asked) -> Mask | None:
    return _any(asked.company.repelled) if asked.company else None


def _say_unwelcome(asked: Asked, refused: Refused) -> str:
    assert asked.company is not None
    near = _first(asked.company.repelled, refused)
    where = _where(near.term, refused)
    return f"{have(refused)} machines{where} that must be apart from {near.term}"


def _any(nears: tuple[Nearness, ...]) -> Mask | None:
    if not nears:
        return None
    mask = np.zeros_like(nears[0].known)
    for near in nears:
        mask |= near.machines > 0
    return mask


def _first(nears: tuple[Nearness, ...], refused: Refused) -> Nearness:
    return next(each for each in nears if (each.machines[refused.rows] > 0).any())


def _where(term: MachineTerm, refused: Refused) -> str:
    """Say how near is near, where that is not the host itself."""
    if term.topology is None:
        return ""
    value = refused.hosts[0].labels.get(term.topology)
    return f" in {term.topology}={value}" if refused.one else f" in their {term.topology}"


NEAR_FILTERS = (
    Filter("PodAffinity", _too_far, _say_too_far),
    Filter("PodAntiAffinity", _too_near, _say_too_near),
    Filter("Neighbours", _unwelcome, _say_unwelcome),
)
