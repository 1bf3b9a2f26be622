"""Objects as a real KubeVirt had them, written down in states that machines pass through."""

from copy import deepcopy
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

from novacron.drivers.kubevirt.belongings import Belongings

__all__ = ["STATES", "recorded"]

Object = dict[str, Any]

DIRECTORY = Path(__file__).parent / "recorded"
STATES = sorted(path.stem for path in DIRECTORY.glob("*.json"))


def recorded(state: str, *, after: timedelta = timedelta(seconds=1), **changed: Any) -> Belongings:
    """Return what there was of a machine in a state, seen so long after it was declared."""
    found: Object = orjson.loads((DIRECTORY / f"{state}.json").read_bytes())
    begun = datetime.fromisoformat(found["claims"][0]["metadata"]["creationTimestamp"])
    has = Belongings(found["machine"], found["instance"], tuple(found["claims"]), at=begun + after)
    return replace(has, **deepcopy(changed))
