"""Filters: which hosts cannot take a machine, and in which words."""

import numpy as np

from novacron.scheduler.company_filters import NEAR_FILTERS
from novacron.scheduler.cpu_filter import KEPT_CPU
from novacron.scheduler.device_filter import DEVICES
from novacron.scheduler.filter import Asked, Filter, Refused, be, lack, some
from novacron.scheduler.host_filters import HOST_FILTERS
from novacron.scheduler.offer_filters import OFFER_FILTERS
from novacron.scheduler.storage_filter import STORAGE
from novacron.scheduler.table import CPU, DISK, MEMORY, HostTable, Mask

__all__ = ["FILTERS", "LASTING", "WISHES"]


def _unready(table: HostTable, _: Asked) -> Mask:
    return table.unready


def _say_unready(_: Asked, refused: Refused) -> str:
    reasons = some(host.why_not_ready for host in refused.hosts if host.why_not_ready)
    because = f" ({reasons})" if reasons else ""
    return f"{be(refused)} not ready{because}"


def _cordoned(table: HostTable, _: Asked) -> Mask:
    return table.cordoned


def _say_cordoned(_: Asked, refused: Refused) -> str:
    return f"{be(refused)} cordoned"


def _unasked(table: HostTable, asked: Asked) -> Mask | None:
    if asked.machine.only_host is None:
        return None
    mask = np.ones(table.size, dtype=np.bool_)
    if (row := table.row(asked.machine.only_host)) is not None:
        mask[row] = False
    return mask


def _say_unasked(asked: Asked, refused: Refused) -> str:
    return f"{be(refused)} not {asked.machine.only_host}, which was asked for"


def _being_left(table: HostTable, asked: Asked) -> Mask | None:
    row = table.row(asked.machine.leaving) if asked.machine.leaving else None
    if row is None:
        return None
    mask = np.zeros(table.size, dtype=np.bool_)
    mask[row] = True
    return mask


def _say_being_left(_: Asked, __: Refused) -> str:
    return "is where it is now"


def _refused_before(table: HostTable, asked: Asked) -> Mask | None:
    rows = [row for row in map(table.row, asked.machine.refused_hosts) if row is not None]
    if not rows:
        return None
    mask = np.zeros(table.size, dtype=np.bool_)
    mask[rows] = True
    return mask


def _say_refused_before(_: Asked, __: Refused) -> str:
    return "refused it before"


def _too_few_cpus(table: HostTable, asked: Asked) -> Mask:
    return _short(table, CPU, asked.machine.wanted.vcpus)


def _say_too_few_cpus(asked: Asked, refused: Refused) -> str:
    return _lack(refused, "CPU", CPU, f"{asked.machine.wanted.vcpus} asked")


def _too_little_memory(table: HostTable, asked: Asked) -> Mask:
    return _short(table, MEMORY, asked.machine.wanted.memory_mib)


def _say_too_little_memory(asked: Asked, refused: Refused) -> str:
    return _lack(refused, "memory", MEMORY, f"{asked.machine.wanted.memory_mib} MiB asked")


def _too_little_disk(table: HostTable, asked: Asked) -> Mask:
    return _short(table, DISK, asked.machine.wanted.disk_mib)


def _say_too_little_disk(asked: Asked, refused: Refused) -> str:
    return _lack(refused, "disk", DISK, f"{asked.machine.wanted.disk_mib} MiB asked")


def _short(table: HostTable, column: int, asked: int) -> Mask:
    mask: Mask = table.free[column] < asked
    return mask


def _lack(refused: Refused, what: str, column: int, asked: str) -> str:
    most = max(int(refused.free[column].max()), 0)
    free = f"{most} free" if refused.one else f"{most} free at most"
    return f"{lack(refused)} {what} ({asked}, {free})"


# In this order a refused host gets its reason: first what is wrong with the host itself, then
# what the machine's owner asked for, and last the room, which is what changes most.
FILTERS: tuple[Filter, ...] = (
    Filter("Asked", _unasked, _say_unasked),
    Filter("Elsewhere", _being_left, _say_being_left),
    Filter("Ready", _unready, _say_unready),
    Filter("Schedulable", _cordoned, _say_cordoned),
    Filter("NotRefused", _refused_before, _say_refused_before),
    *HOST_FILTERS,
    *OFFER_FILTERS,
    KEPT_CPU,
    DEVICES,
    *NEAR_FILTERS,
    Filter("CPU", _too_few_cpus, _say_too_few_cpus),
    Filter("Memory", _too_little_memory, _say_too_little_memory),
    Filter("Disk", _too_little_disk, _say_too_little_disk),
    STORAGE,
)
# Those that say the same of a host for as long as nobody equips it otherwise.
LASTING = (*(each for each in HOST_FILTERS if each.name != "Taints"), *OFFER_FILTERS)
# The names of those that say where the machine's owner wants it.
WISHES = frozenset({"Selector", "NodeAffinity", "PodAffinity", "PodAntiAffinity"})
