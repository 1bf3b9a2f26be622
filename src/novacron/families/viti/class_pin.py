"""What a Machine's class said when the Machine was made, which stays its size until it asks anew.

A class that is edited, deleted or made the default would otherwise restart every machine of it at
once. The record stands in an annotation, written together with our finalizer. Built-in templates
never change and need none.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import orjson

from novacron.core.conditions import Condition
from novacron.core.errors import Rejected
from novacron.families.viti.marks import CLASS_AS_MADE
from novacron.families.viti.sizing import Base, base_of
from novacron.families.viti.templates import BUILT_IN

__all__ = ["CLASS_CHANGED", "base_for", "class_changed", "is_recorded", "recorded"]

Object = dict[str, Any]

CLASS_CHANGED = "ClassChanged"


def base_for(obj: Object, classes: Mapping[str, Object], *, new: bool = True) -> Base:
    """Return what a Machine's template gives it: as it was made, or else as it is now."""
    return _of_record(obj) or base_of(obj["spec"], classes, new=new)


def is_recorded(obj: Object) -> bool:
    """Say whether nothing that happens to classes can change the size of a Machine."""
    return obj["spec"].get("template") in BUILT_IN or _of_record(obj) is not None


def recorded(obj: Object, classes: Mapping[str, Object]) -> dict[str, str]:
    """Return the annotation that keeps what a Machine's template gives it now; may be none."""
    if obj["spec"].get("template") in BUILT_IN:
        return {}
    base = base_for(obj, classes)
    record = {"machine": obj["metadata"]["uid"], "asked": _asked(obj), "class": asdict(base)}
    return {CLASS_AS_MADE: orjson.dumps(record).decode()}


def class_changed(obj: Object, classes: Mapping[str, Object]) -> Condition | None:
    """Say that a Machine's class says otherwise by now, and how to have what it says."""
    if (made := _of_record(obj)) is None or not made.name:
        return None
    try:
        now = base_of(
            {**obj["spec"], "template": made.name, "machineClass": None}, classes, new=False
        )
    except Rejected:
        now = None
    if made.name in BUILT_IN or now == made:
        return None
    gone = made.name not in classes
    message = (
        f"MachineClass {made.name} {'is gone' if gone else 'was changed'}; the machine stays as it "
        f"was made: take the annotation {CLASS_AS_MADE} off to have what the class says by now"
    )
    return Condition(CLASS_CHANGED, "True", "ClassGone" if gone else "ClassEdited", message)


def _asked(obj: Object) -> str:
    """Return the class that a Machine asks for, in either word; asking for another one counts."""
    spec = obj["spec"]
    return str(spec.get("template") or spec.get("machineClass") or "")


def _of_record(obj: Object) -> Base | None:
    text = (obj["metadata"].get("annotations") or {}).get(CLASS_AS_MADE)
    try:
        record = orjson.loads(text or "{}")
        if (record["machine"], record["asked"]) != (obj["metadata"]["uid"], _asked(obj)):
            return None  # copied from another one, or asked for anew since
        found: Base = Base(**{**record["class"], "disks": tuple(record["class"]["disks"])})
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return None
    return found
