"""Which KubeVirt cluster a Machine is made in: as it asks, and, once it was made, for good.

The record is written together with our finalizer, before anything is made. It never names a
namespace: whoever may write a Machine may use the Secrets beside it, and no others.
"""

import re
from dataclasses import dataclass
from typing import Any

import orjson

from novacron.core.errors import Rejected
from novacron.families.viti.marks import FINALIZER, KUBEVIRT_CONFIG, MADE_IN

__all__ = ["HERE", "Pin", "asked_for", "checked", "pin_of", "pinned"]

Object = dict[str, Any]

# Who is asked for machines that name nobody: the cluster that they are declared in.
HERE = "kubevirt://"
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Pin:
    """A cluster by the Secret that says how to reach it, none for that of the Machine itself.

    ``cluster`` tells it from all others, whatever the Secret says later.
    """

    secret: str = ""
    cluster: str = ""

    def address(self, namespace: str) -> str:
        """Return where a Machine of a namespace is made."""
        return f"{HERE}{namespace}/{self.secret}" if self.secret else HERE

    def __str__(self) -> str:
        return f"{HERE}{self.secret}" + (f"#{self.cluster}" if self.cluster else "")


def asked_for(obj: Object) -> Pin:
    """Return where a Machine asks to be made."""
    name = (obj["metadata"].get("annotations") or {}).get(KUBEVIRT_CONFIG) or ""
    return Pin(name if _NAME.fullmatch(name) else "")


def checked(obj: Object) -> None:
    """Raise Rejected where what a Machine asks for cannot be a Secret."""
    name = (obj["metadata"].get("annotations") or {}).get(KUBEVIRT_CONFIG) or ""
    if name and not _NAME.fullmatch(name) and pin_of(obj) is None:
        raise Rejected(
            f"annotation {KUBEVIRT_CONFIG} is to be the name of a Secret in the Machine's own "
            "namespace, and this cannot be one: correct it",
            reason="ClusterUnknown",
        )


def pin_of(obj: Object) -> Pin | None:
    """Return where a Machine was made, or was about to be; None where nothing was begun."""
    metadata = obj["metadata"]
    record = _record((metadata.get("annotations") or {}).get(MADE_IN))
    # One that was copied from another Machine says nothing of this one.
    if record.get("machine") == metadata["uid"]:
        return Pin(str(record.get("secret") or ""), str(record.get("cluster") or ""))
    told = str((obj.get("status") or {}).get("provider") or "")
    if not told.startswith(HERE):
        return None
    secret, _, cluster = told.removeprefix(HERE).partition("#")
    return Pin(secret, cluster)


def pinned(obj: Object, cluster: str) -> Object:
    """Return a Machine with our finalizer and the record of where it is made from now on."""
    metadata = obj["metadata"]
    pin = pin_of(obj) or Pin(asked_for(obj).secret, cluster)
    record = {"machine": metadata["uid"], "secret": pin.secret, "cluster": pin.cluster}
    notes = {**(metadata.get("annotations") or {}), MADE_IN: orjson.dumps(record).decode()}
    others = [name for name in metadata.get("finalizers") or () if name != FINALIZER]
    finalizers = [*others, FINALIZER]
    return {**obj, "metadata": {**metadata, "annotations": notes, "finalizers": finalizers}}


def _record(text: str | None) -> Object:
    try:
        found = orjson.loads(text or "{}")
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}
