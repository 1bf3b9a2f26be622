"""What is known of a NetworkConfiguration, in the words of its status.

Others write there too: whoever hands out addresses says so in ``networkInterfaces``, and upstream
gives it the last word on the phase. What is theirs is left as it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from novacron.core.conditions import Condition, merge_conditions
from novacron.core.errors import Rejected
from novacron.families.viti.nics import attachment_of
from novacron.families.wording import conditions_of, written_conditions

__all__ = ["NetworkKind"]

Object = dict[str, Any]

READY, FAILED = "Ready", "Failed"
CONDITION = "NetworkReady"


@dataclass(frozen=True, slots=True)
class NetworkKind:
    """How a NetworkConfiguration says what it is good for and to whom."""

    def status(self, obj: Object, users: Sequence[str], now: datetime) -> Object:
        """Return the whole status of a network that these machines are on."""
        before: Object = obj.get("status") or {}
        found = _usable(obj)
        ready = found.status == "True"
        conditions = merge_conditions(conditions_of(before), {CONDITION: found}, now)
        status = {
            **before,
            "conditions": written_conditions(conditions),
            "machines": list(users) or None,
            "networkAttachmentDefinition": _attachment(obj) if ready else None,
            "observedGeneration": obj["metadata"]["generation"],
        }
        if not obj["spec"].get("provider"):
            status["phase"] = READY if ready else FAILED
            status["message"] = None if ready else found.message
        return {name: value for name, value in status.items() if value is not None}


def _usable(obj: Object) -> Condition:
    name = obj["metadata"]["name"]
    try:
        found = attachment_of(name, obj["spec"])
    except Rejected as error:
        return Condition(CONDITION, "False", "NetworkFailed", str(error))
    if found.existing is not None:
        message = f"machines are attached by NetworkAttachmentDefinition {found.existing}"
    else:
        tagged = f" in VLAN {found.vlan}" if found.vlan is not None else ""
        message = f"machines are plugged into bridge {found.bridge} of their nodes{tagged}"
    return Condition(CONDITION, "True", "NetworkConfigured", message)


def _attachment(obj: Object) -> str:
    """Return what machines are attached by: a definition that is there, or one that is made."""
    name: str = obj["metadata"]["name"]
    return attachment_of(name, obj["spec"]).existing or name
