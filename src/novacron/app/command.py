"""``novacron operator run``: the operator's flags and environment, turned into settings."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import click

from novacron.app.image_options import image_options
from novacron.cli.options import families, split

__all__ = ["operator", "run"]

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}


class Duration(click.ParamType[timedelta]):
    """A duration as Go programs write it: 30s, 5m, 1h30m."""

    name = "duration"

    def convert(
        self,
        value: str | timedelta,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> timedelta:
        """Read the text; a value that was read before stays as it is."""
        if isinstance(value, timedelta):
            return value
        parts = _DURATION.findall(value)
        seconds = sum(float(number) * _SECONDS[unit] for number, unit in parts)
        if "".join(number + unit for number, unit in parts) != value or seconds <= 0:
            self.fail(f"{value!r} is not a duration such as 30s or 5m", param, ctx)
        return timedelta(seconds=seconds)


@click.group()
def operator() -> None:
    """The operator."""


# fmt: off
@operator.command()
@click.option("--leader-elect/--no-leader-elect", default=True, show_default=True,
              envvar="LEADER_ELECTION", show_envvar=True,
              help="Place machines only while holding the leader's lease.")
@click.option("--metrics-bind-addr", default=":8080", show_default=True,
              envvar="METRICS_BIND_ADDRESS", show_envvar=True, help="For Prometheus.")
@click.option("--health-probe-bind-addr", default=":8081", show_default=True,
              envvar="HEALTH_PROBE_BIND_ADDRESS", show_envvar=True,
              help="For /healthz and /readyz.")
@click.option("--webhook-bind-addr", default=":9443", show_default=True, help="For webhooks.")
@click.option("--webhook-url", envvar="WEBHOOK_URL", show_envvar=True,
              help="Where the API server reaches the webhooks, if not through a Service.")
@families
@click.option("--workers", type=click.IntRange(min=1), default=16, show_default=True,
              envvar="MAX_CONCURRENT_RECONCILES", show_envvar=True,
              help="How many objects are worked on at once.")
@click.option("--shards", type=click.IntRange(min=1), default=1, show_default=True,
              help="Into how many parts processes divide the objects.")
@click.option("--reconcile-interval", type=Duration(), default="30s", show_default=True,
              envvar="RECONCILE_INTERVAL", show_envvar=True,
              help="How often each host is looked at for drift.")
@click.option("--watch-namespace", "watch_namespaces", default="", envvar="WATCH_NAMESPACE",
              show_envvar=True, callback=lambda _context, _parameter, value: split(value),
              help="With commas; empty means all.")
@click.option("--namespace", default="novacron-system", show_default=True,
              envvar="NAMESPACE", show_envvar=True,
              help="The operator's own: leases and certificates.")
@click.option("--simulation-file", type=click.Path(dir_okay=False, path_type=Path),
              default="/var/lib/novacron/simulation.db", show_default=True,
              help="Where simulated hosts keep their machines.")
@click.option("--images-directory", type=click.Path(file_okay=False, path_type=Path),
              default="/usr/share/novacron/images", show_default=True,
              help="Where builtin:// images are.")
@image_options
@click.option("--shutdown-grace", type=Duration(), default="60s", show_default=True,
              envvar="SHUTDOWN_GRACE", show_envvar=True,
              help="How long a guest may take to shut down before it is forced.")
@click.option("--host-failure-grace", type=Duration(), default="60s", show_default=True,
              help="How long a fenced host is silent before its machines begin anew elsewhere.")
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]),
              default="info", show_default=True, help="How much to log.")
@click.option("--log-format", type=click.Choice(["json", "text"]), default="json",
              show_default=True, help="For programs or for people.")
@click.option("--kubeconfig", type=click.Path(dir_okay=False, path_type=Path),
              help="Default: the pod's own, $KUBECONFIG, ~/.kube/config.")
@click.option("--context", help="A context of the kubeconfig.")
def run(**flags: Any) -> None:  # noqa: ANN401 - each flag is a setting of the same name
    # fmt: on
    """Run the operator until it is told to stop."""
    from novacron.app.main import run as run_operator  # noqa: PLC0415 - heavy
    from novacron.app.settings import Settings  # noqa: PLC0415

    raise SystemExit(run_operator(Settings(**flags)))
