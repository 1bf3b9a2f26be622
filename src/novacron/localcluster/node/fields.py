"""What a pod may say of itself to its containers: fields and resources, as Kubernetes names them.

Pure: a pod's object in, text out.
"""

import math
import re
from collections.abc import Mapping
from fractions import Fraction

from novacron.runtime.resource import Object

__all__ = ["UnknownField", "field_value", "quantity", "resource_value"]

_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['([^']*)'\]")
_QUANTITY = re.compile(r"([0-9.]+)(m|[kMGTPE]i?|Ki|e[0-9]+|)")
_UNITS = {
    "": Fraction(1),
    "m": Fraction(1, 1000),
    **{unit: Fraction(1000**power) for power, unit in enumerate("kMGTPE", 1)},
    **{f"{unit}i": Fraction(1024**power) for power, unit in enumerate("KMGTPE", 1)},
}


class UnknownField(ValueError):
    """There is no such field to refer to."""


def field_value(pod: Object, path: str) -> str:
    """Return the text of a field of a pod."""
    metadata = pod["metadata"]
    if match := _SUBSCRIPT.fullmatch(path):
        return str((metadata.get(match[1]) or {}).get(match[2], ""))
    if path in ("metadata.labels", "metadata.annotations"):
        values: Mapping[str, str] = metadata.get(path.removeprefix("metadata.")) or {}
        # Quoted as Kubernetes does it, so that a line end cannot begin a line of its own.
        return "\n".join(f"{name}={_quoted(value)}" for name, value in sorted(values.items()))
    status = pod.get("status") or {}
    known = {
        "metadata.name": metadata["name"],
        "metadata.namespace": metadata["namespace"],
        "metadata.uid": metadata["uid"],
        "spec.nodeName": pod["spec"].get("nodeName", ""),
        "spec.serviceAccountName": pod["spec"].get("serviceAccountName", ""),
        "status.hostIP": status.get("hostIP", ""),
        "status.hostIPs": status.get("hostIP", ""),
        "status.podIP": status.get("podIP", ""),
        "status.podIPs": status.get("podIP", ""),
    }
    if path not in known:
        raise UnknownField(f"there is no field {path} to refer to")
    return str(known[path])


def resource_value(container: Object, reference: Object, allocatable: Mapping[str, str]) -> str:
    """Return a container's limit or request; no limit is all that the node has."""
    what, _, name = reference["resource"].partition(".")
    if what not in ("limits", "requests") or not name:
        raise UnknownField(f"there is no resource {reference['resource']} to refer to")
    resources = container.get("resources") or {}
    given = (resources.get(what) or {}).get(name)
    if given is None:
        given = allocatable.get(name, "0") if what == "limits" else "0"
    divisor = quantity(str(reference.get("divisor") or "1")) or Fraction(1)
    return str(math.ceil(quantity(str(given)) / divisor))


def quantity(text: str) -> Fraction:
    """Return the number that a quantity such as 500m or 64Mi stands for."""
    match = _QUANTITY.fullmatch(text)
    if not match:
        raise UnknownField(f"{text} is not a quantity")
    number, unit = match.groups()
    if unit.startswith("e"):
        return Fraction(f"{number}{unit}")
    return Fraction(number) * _UNITS[unit]


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
