"""The placer's word on a VirtualMachine: where it will be made, and what was asked for then.

An annotation, written together with our finalizer before anything is done, and sealed. It says
how often hosts had turned the machine away by then, so that it does not count again when somebody
kept it and puts it back after they did once more.
"""

import hashlib
import json
from collections.abc import Set
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson

from novacron.core.placement import Placement
from novacron.families.device_record import devices_of, written_devices
from novacron.families.seal import Seal
from novacron.families.wording import amounts, written_amounts

__all__ = ["PLACEMENT", "recorded", "refusals_with", "wants_elsewhere", "written_record"]

Object = dict[str, Any]

PLACEMENT = "novacron.io/placement"
PURPOSE = "placement"
# What nobody wants: whoever compares looks at what is wanted now.
LOST = "lost"
WISHES = ("nodeSelector", "affinity", "tolerations")


@dataclass(frozen=True, slots=True)
class _Record:
    uid: str
    placement: Placement
    wishes: str | None
    refusals: int


def recorded(obj: Object, seal: Seal) -> Placement | None:
    """Return what is on record.

    A copy of another object's is not ours, and one from before the last refusal is void.
    """
    record, now = _of(obj, seal), (obj["metadata"]["uid"], _refusals(obj.get("status") or {}))
    return record.placement if record and (record.uid, record.refusals) == now else None


def refusals_with(refused_hosts: Set[str], status: Object) -> int:
    """Return how often hosts have turned a machine away, with those its status does not name."""
    return _refusals(status) + len(refused_hosts - set(status.get("refusedHosts") or ()))


def wants_elsewhere(obj: Object, seal: Seal) -> bool:
    """Say whether its owner may want it elsewhere than when it was last placed.

    Where it is, is known by its status, and what was wanted then by its record alone.
    """
    record = _of(obj, seal)
    if record is None:
        return bool((obj.get("status") or {}).get("nodeName"))
    return record.wishes not in (None, _wishes(obj))


def written_record(obj: Object, placement: Placement, seal: Seal, *, met: bool = True) -> str:
    """Return a placement as the annotation has it.

    One that may not have ``met`` what is wanted by now says what was wanted before.
    """
    wishes = _wishes(obj) if met else _wishes_before(obj, seal)
    record: Object = {"uid": obj["metadata"]["uid"], "host": placement.host, "wishes": wishes}
    record |= written_amounts(placement.reserved) or {}
    if refusals := _refusals(obj.get("status") or {}):
        record["refusals"] = refusals
    if placement.because:
        record["because"] = placement.because
    if placement.devices:
        record["devices"] = written_devices(placement.devices)
    return seal.closed(PURPOSE, record)


def _of(obj: Object, seal: Seal) -> _Record | None:
    text = (obj["metadata"].get("annotations") or {}).get(PLACEMENT)
    return _read(text, seal) if text else None


@lru_cache(maxsize=512)  # many ask for it again while a machine is made
def _read(text: str, seal: Seal) -> _Record | None:
    """Return what an annotation says; one that somebody else wrote says nothing."""
    record = seal.opened(PURPOSE, text)
    if record is None:
        return None
    try:
        placement = Placement(
            record["host"],
            amounts(record),
            devices_of(record.get("devices")),
            record.get("because", ""),
        )
        return _Record(record["uid"], placement, record.get("wishes"), record.get("refusals", 0))
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _refusals(status: Object) -> int:
    return int(status.get("refusals") or 0)


def _wishes_before(obj: Object, seal: Seal) -> str:
    record = _of(obj, seal)
    if record is None:
        return LOST
    return _wishes(obj) if record.wishes is None else record.wishes


def _wishes(obj: Object) -> str:
    """Return a word that changes with where the machine's owner wants it; empty for anywhere."""
    template = obj["spec"]["template"]["spec"]
    wishes = {name: template[name] for name in WISHES if template.get(name)}
    if not wishes:
        return ""
    return _word_for(orjson.dumps(wishes, option=orjson.OPT_SORT_KEYS))


@lru_cache(maxsize=512)  # many machines want the same, and every change of one asks for it
def _word_for(wishes: bytes) -> str:
    # Written the way it is in records that there are already.
    text = json.dumps(orjson.loads(wishes), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
