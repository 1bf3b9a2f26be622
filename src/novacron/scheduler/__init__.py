"""The scheduler: on which host a machine goes, and why not on the others.

Pure: values in, a decision out. It knows neither Kubernetes nor any hypervisor, asks no clock
and draws no lots, so the operator, the tests and the benchmarks run the same code.
"""

from novacron.scheduler.engine import Decision, Nowhere, Placed, choose, fits, unwelcome
from novacron.scheduler.explain import Refusal, one_line, refusals
from novacron.scheduler.table import HostTable

__all__ = [
    "Decision",
    "HostTable",
    "Nowhere",
    "Placed",
    "Refusal",
    "choose",
    "fits",
    "one_line",
    "refusals",
    "unwelcome",
]
