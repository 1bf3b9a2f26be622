"""The filter on devices: whether a host has enough of them free."""

import numpy as np

from novacron.scheduler.devices import DeviceView
from novacron.scheduler.filter import Asked, Filter, Refused, lack
from novacron.scheduler.table import HostTable, Mask

__all__ = ["DEVICES"]


def _without(_: HostTable, asked: Asked) -> Mask | None:
    return None if asked.devices is None else asked.devices.lacking


def _say(asked: Asked, refused: Refused) -> str:
    view = asked.devices
    assert view is not None
    for number, wanted in enumerate(view.wanted):
        free = int(view.free[number, refused.rows].max())
        if free < wanted.count:
            return f"{lack(refused)} devices (needs {wanted}, {_has(view, number, refused)})"
    together = " and ".join(map(str, view.wanted))
    return f"{lack(refused)} devices (needs {together} at once, has them only one by one)"


def _has(view: DeviceView, number: int, refused: Refused) -> str:
    """Say what there is: nothing, nothing free, or too little."""
    present, free = (int(np.max(kind[number, refused.rows])) for kind in (view.present, view.free))
    if not present:
        return "has none"
    if not refused.one:
        return f"has {free} free at most"
    return f"has {present}, {free or 'none'} of them free"


DEVICES = Filter("Devices", _without, _say)
