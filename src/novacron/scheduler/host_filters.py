"""Filters on what a host is marked with: labels, names and taints."""

import numpy as np

from novacron.core.affinity import HostTerm, Requirement
from novacron.core.host import Host
from novacron.core.machine import Machine
from novacron.scheduler.filter import Asked, Filter, Refused, have, lack, some
from novacron.scheduler.table import HostTable, Mask
from novacron.scheduler.taints import REPELLING, untolerated

__all__ = ["HOST_FILTERS", "meets"]


def _unselected(table: HostTable, asked: Asked) -> Mask | None:
    selector = asked.machine.host_selector
    return table.lacking(selector) if selector else None


def _say_unselected(asked: Asked, refused: Refused) -> str:
    missing = {
        f"{key}={value}"
        for host in refused.hosts
        for key, value in asked.machine.host_selector.items()
        if host.labels.get(key) != value
    }
    noun = "label" if len(missing) == 1 else "labels"
    return f"{lack(refused)} {noun} {some(missing)}"


def meets(table: HostTable, term: HostTerm) -> Mask:
    """Return which rows' hosts are meant by a term."""
    mask = np.full(table.size, not term.is_empty, dtype=np.bool_)
    for requirement in term.labels:
        mask &= table.meeting(requirement)
    for requirement in term.names:
        mask &= _named(table, requirement)
    return mask


def _named(table: HostTable, requirement: Requirement) -> Mask:
    # Every host has a name, so what is said of none of the values is true of all others.
    mask = np.full(table.size, requirement.operator in ("NotIn", "Exists"), dtype=np.bool_)
    for name in requirement.values:
        row = table.row(name)
        if row is not None:
            mask[row] = requirement.met_by(name)
    return mask


def _unfitting(table: HostTable, asked: Asked) -> Mask | None:
    terms = asked.machine.affinity.hosts if asked.machine.affinity else None
    if terms is None:
        return None
    fitting = np.zeros(table.size, dtype=np.bool_)
    for term in terms:
        fitting |= meets(table, term)
    return ~fitting


def _say_unfitting(asked: Asked, refused: Refused) -> str:
    affinity = asked.machine.affinity
    assert affinity is not None
    terms = affinity.hosts or ()
    if len(terms) == 1 and refused.one:
        return f"does not meet nodeAffinity ({_missing(terms[0], refused.hosts[0])})"
    needed = ", or ".join(str(term) for term in terms[:3])
    more = f", or {len(terms) - 3} more" if len(terms) > 3 else ""
    return f"{'does' if refused.one else 'do'} not meet nodeAffinity (needs {needed}{more})"


def _missing(term: HostTerm, host: Host) -> str:
    unmet = term.unmet(host.name, host.labels)
    if not unmet:
        return f"needs {term}"
    first = unmet[0]
    value = host.name if first in term.names else host.labels.get(first.key)
    has = f"no {first.key}" if value is None else f"{first.key}={value}"
    return f"needs {' and '.join(map(str, unmet))}, has {has}"


def _tainted(table: HostTable, asked: Asked) -> Mask:
    tolerations = asked.machine.tolerations
    return table.repelling(tolerations) if tolerations else table.tainted


def _say_tainted(asked: Asked, refused: Refused) -> str:
    taints = {str(taint) for host in refused.hosts for taint in _repelling(asked.machine, host)}
    noun = "taint" if len(taints) == 1 else "taints"
    return f"{have(refused)} {noun} {some(taints)}"


def _repelling(machine: Machine, host: Host) -> list[object]:
    left = untolerated(host.taints, machine.tolerations)
    return [taint for taint in left if taint.effect in REPELLING]


HOST_FILTERS = (
    Filter("Selector", _unselected, _say_unselected),
    Filter("NodeAffinity", _unfitting, _say_unfitting),
    Filter("Taints", _tainted, _say_tainted),
)
