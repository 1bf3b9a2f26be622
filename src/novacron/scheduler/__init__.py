"""The scheduler: on which host a machine goes, and why not on the others.

Pure: values in, a decision out. It knows neither Kubernetes nor any hypervisor, asks no clock
and draws no lots, so the operator, the tests and the benchmarks run the same code.
"""

from novacron.scheduler.engine import (
    Decision,
    Nowhere,
    Placed,
    choose,
    devices_on,
    fits,
    overdrawn,
    suited,
    unwelcome,
)
from novacron.scheduler.explain import Rated, Refusal, one_line, rated, refusals
from novacron.scheduler.table import Held, HostTable

__all__ = [
    "Decision",
    "Held",
    "HostTable",
    "Nowhere",
    "Placed",
    "Rated",
    "Refusal",
    "choose",
    "devices_on",
    "fits",
    "one_line",
    "overdrawn",
    "rated",
    "refusals",
    "suited",
    "unwelcome",
]
