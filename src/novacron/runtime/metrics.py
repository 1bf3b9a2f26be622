"""Metrics of the runtime itself: queues, retries, API requests, watches, the lease."""

from collections.abc import Callable
from functools import cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

__all__ = ["RuntimeMetrics"]

# prometheus.ExponentialBuckets(0.001, 2, 15): a millisecond to sixteen seconds.
EXPONENTIAL_BUCKETS = tuple(0.001 * 2**power for power in range(15))

disable_created_metrics()  # type: ignore[no-untyped-call]


class RuntimeMetrics:
    """Counts what the runtime does; every part of it is told through a small protocol."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._reconciles = Counter(
            "novacron_reconcile_total",
            "Total number of reconciliations",
            ["controller", "result"],
            registry=registry,
        )
        self._durations = Histogram(
            "novacron_reconcile_duration_seconds",
            "Reconciliation duration in seconds",
            ["controller"],
            buckets=EXPONENTIAL_BUCKETS,
            registry=registry,
        )
        self._retries = Counter(
            "novacron_reconcile_retries_total",
            "Reconciliations that failed and were queued again",
            ["controller"],
            registry=registry,
        )
        self._depth = Gauge(
            "novacron_queue_depth", "Keys waiting in a queue", ["controller"], registry=registry
        )
        self._waits = Histogram(
            "novacron_queue_wait_seconds",
            "Time a key waited in its queue",
            ["controller"],
            buckets=EXPONENTIAL_BUCKETS,
            registry=registry,
        )
        self._requests = Counter(
            "novacron_api_requests_total",
            "Requests to the API server; code 0 is no answer",
            ["verb", "code"],
            registry=registry,
        )
        self._watches = Counter(
            "novacron_watch_restarts_total",
            "Watches that were begun again, and why",
            ["resource", "why"],
            registry=registry,
        )
        self._lease = Gauge(
            "novacron_lease_held",
            "1 while this process holds the claim",
            ["claim"],
            registry=registry,
        )

        # Finding a series by its labels costs more than counting in it.
        self._counted = cache(self._reconciles.labels)
        self._timed = cache(self._durations.labels)
        self._requested = cache(lambda verb, code: self._requests.labels(verb, str(code)))

    def reconciled(self, controller: str, result: str, seconds: float) -> None:
        """Count one reconcile."""
        self._counted(controller, result).inc()
        self._timed(controller).observe(seconds)
        if result == "error":
            self._retries.labels(controller).inc()

    def waited(self, controller: str) -> Callable[[float], None]:
        """Return where a queue reports how long keys waited."""
        return self._waits.labels(controller).observe

    def depth_of(self, controller: str, measure: Callable[[], float]) -> None:
        """Have a queue's depth measured when somebody asks."""
        self._depth.labels(controller).set_function(measure)

    def request_done(self, verb: str, code: int, seconds: float) -> None:  # noqa: ARG002
        """Count one request to the API server."""
        self._requested(verb, code).inc()

    def watch_restarted(self, resource: str, why: str) -> None:
        """Count one restart of a watch."""
        self._watches.labels(resource, why).inc()

    def claim_held(self, claim: str, *, held: bool) -> None:
        """Say whether a claim is held."""
        self._lease.labels(claim).set(1 if held else 0)
