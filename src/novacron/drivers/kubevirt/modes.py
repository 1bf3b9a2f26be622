"""How a claim asks for its storage: what lets machines move while they run, where that is there."""

from collections.abc import Sequence
from typing import Any

from novacron.core.volume import Access

__all__ = ["claim_modes"]

Object = dict[str, Any]


def claim_modes(
    access: Access | None, properties: Sequence[Object] = (), *, block: bool | None = None
) -> tuple[Access, bool]:
    """Return the access of a claim, and whether it is for a device.

    ``properties`` are the claimPropertySets of the class's StorageProfile, best first, where there
    is one. What was asked for counts; for the rest it is the storage's best that can be shared, or
    else its best, or else what every storage can.
    """
    offers = [
        (Access(mode), each.get("volumeMode") == "Block")
        for each in properties
        for mode in each.get("accessModes") or ()
    ]
    fitting = [o for o in offers if access in (None, o[0]) and block in (None, o[1])]
    best = next((offer for offer in fitting if offer[0] is Access.MANY), None)
    found = best or next(iter(fitting), (Access.ONCE, False))
    return access or found[0], found[1] if block is None else block
