"""How a machine says that it is to leave its host and stays: it is never stopped for a taint."""

from typing import Any

from novacron.controllers.bids import Bid, Refused
from novacron.core.conditions import Condition

__all__ = ["EVICTION_BLOCKED", "blocked", "stays_put"]

EVICTION_BLOCKED = "EvictionBlocked"


def blocked(bid: Bid, refused: Refused) -> Condition:
    """Return the condition of a machine that cannot leave."""
    message = f"{bid.why}, which it does not tolerate, and it stays: {refused.message}"
    return Condition(EVICTION_BLOCKED, "True", refused.reason, message)


def stays_put(obj: dict[str, Any]) -> bool:
    """Say whether an object says so, which may not be true any more."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(each["type"] == EVICTION_BLOCKED for each in conditions)
