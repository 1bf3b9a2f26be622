"""The filter on storage classes: whether a host has enough free of each."""

from novacron.scheduler.filter import Asked, Filter, Refused, lack
from novacron.scheduler.table import HostTable, Mask

__all__ = ["STORAGE", "named"]


def named(storage_class: str) -> str:
    """Return what a class is called in messages; the one without a name is hosts' own storage."""
    return f"storage of class {storage_class}" if storage_class else "disk that hosts share"


def _without(_: HostTable, asked: Asked) -> Mask | None:
    return None if asked.storage is None else asked.storage.lacking


def _say(asked: Asked, refused: Refused) -> str:
    view = asked.storage
    assert view is not None
    for number, (storage_class, mib) in enumerate(view.wanted):
        most = int(view.free[number, refused.rows].max())
        if most < mib:
            free = f"{max(most, 0)} free" + ("" if refused.one else " at most")
            said = f"{lack(refused)} {named(storage_class)} ({mib} MiB asked, {free})"
            return said + _trouble(refused, storage_class)
    together = " and ".join(f"{mib} MiB of {named(name)}" for name, mib in view.wanted)
    return f"{lack(refused)} room for {together} at once, which are one place there"


def _trouble(refused: Refused, storage_class: str) -> str:
    """Return why there is nothing of a class, as one of the hosts says."""
    rooms = (room for host in refused.hosts for room in host.storage)
    said = (each.trouble for each in rooms if each.storage_class == storage_class)
    return next((f": {trouble}" for trouble in said if trouble), "")


STORAGE = Filter("Storage", _without, _say)
