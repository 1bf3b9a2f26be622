"""What a process costs and what an API server was asked to write.

Reads the kernel's and the server's own counters; knows no contender and starts nothing.
"""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

__all__ = ["Usage", "Write", "busy_s", "operator_writes", "usage", "writes"]

KIB_PER_MIB = 1024
WRITE_VERBS = frozenset({"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"})
METRIC = re.compile(r"^apiserver_request_total\{(?P<labels>.*)\} (?P<count>\S+)$", re.MULTILINE)
LABEL = re.compile(r'(\w+)="([^"]*)"')
LEASES = "leases.coordination.k8s.io"
EVENTS = frozenset({"events", "events.events.k8s.io"})


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process and its children have taken so far."""

    cpu_s: float
    resident_mib: float
    peak_mib: float


def usage(pid: int) -> Usage:
    """Return what the process and all its children, living or gone, have taken."""
    cpu_s = resident_kib = peak_kib = 0.0
    for process in _family(pid):
        with suppress(psutil.NoSuchProcess, FileNotFoundError):
            cpu_s += sum(
                process.cpu_times()[:4]
            )  # own user and system, then those of dead children
            resident_kib += _memory_kib(process.pid, "VmRSS")
            peak_kib += _memory_kib(process.pid, "VmHWM")
    return Usage(cpu_s, resident_kib / KIB_PER_MIB, peak_kib / KIB_PER_MIB)


def _family(pid: int) -> Iterator[psutil.Process]:
    parent = psutil.Process(pid)
    yield parent
    yield from parent.children(recursive=True)


def _memory_kib(pid: int, field: str) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(rf"^{field}:\s+(\d+) kB$", status, re.MULTILINE)
    return int(found[1]) if found else 0


@dataclass(frozen=True, slots=True)
class Write:
    """One way of changing one kind of object."""

    verb: str
    resource: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}"


def writes(metrics: str) -> Counter[Write]:
    """Return how often each kind was written, from the server's metrics page.

    Leases are left out: a heartbeat is written by the clock, not by the number of machines.
    Refused attempts count as well, since they cost the server nearly as much.
    """
    counted: Counter[Write] = Counter()
    for row in METRIC.finditer(metrics):
        label = dict(LABEL.findall(row["labels"]))
        resource = ".".join(filter(None, (label["resource"], label["group"])))
        write = Write(label["verb"], "/".join(filter(None, (resource, label["subresource"]))))
        if write.verb in WRITE_VERBS and resource != LEASES and not label.get("dry_run"):
            counted[write] += int(float(row["count"]))
    return counted


def operator_writes(counted: Counter[Write]) -> int:
    """Return how many of the writes the operator made, events apart: all but the load's."""
    load = Write("POST", "virtualmachines.novacron.io")
    return sum(
        number
        for write, number in counted.items()
        if write != load and write.resource not in EVENTS
    )


def busy_s() -> float:
    """Return the CPU time that everything on this machine has taken since it started."""
    times = psutil.cpu_times()
    return float(times.user + times.system + times.irq + times.softirq)
