"""Flags and environment variables of the operator: names, defaults, and which of them wins."""

from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from novacron.app import main
from novacron.app.command import operator
from novacron.app.settings import Settings


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """What operators would have been run with."""
    seen: list[Settings] = []
    monkeypatch.setattr(main, "run", lambda given: seen.append(given) or 0)
    return seen


# The specification's variables: what one says, the setting it sets, its value and the default.
VARIABLES = [
    ("RECONCILE_INTERVAL", "45s", "reconcile_interval", timedelta(seconds=45)),
    ("MAX_CONCURRENT_RECONCILES", "5", "workers", 5),
    ("METRICS_BIND_ADDRESS", ":9090", "metrics_bind_addr", ":9090"),
    ("HEALTH_PROBE_BIND_ADDRESS", ":9091", "health_probe_bind_addr", ":9091"),
    ("LEADER_ELECTION", "false", "leader_elect", False),
    ("NAMESPACE", "team", "namespace", "team"),
]
FLAGS = {
    "RECONCILE_INTERVAL": ("--reconcile-interval=10s", timedelta(seconds=10)),
    "MAX_CONCURRENT_RECONCILES": ("--workers=7", 7),
    "METRICS_BIND_ADDRESS": ("--metrics-bind-addr=:1", ":1"),
    "HEALTH_PROBE_BIND_ADDRESS": ("--health-probe-bind-addr=:2", ":2"),
    "LEADER_ELECTION": ("--leader-elect", True),
    "NAMESPACE": ("--namespace=mine", "mine"),
}


def run(*flags: str, **environment: str) -> None:
    """Run the command."""
    result = CliRunner().invoke(operator, ["run", *flags], env=environment)
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(("name", "text", "setting", "value"), VARIABLES)
def test_a_variable_of_the_specification_sets_what_it_says(
    settings: list[Settings], name: str, text: str, setting: str, value: object
) -> None:
    run(**{name: text})
    assert getattr(settings[0], setting) == value


@pytest.mark.parametrize(("name", "text", "setting", "value"), VARIABLES)
def test_a_flag_wins_over_its_variable(
    settings: list[Settings], name: str, text: str, setting: str, value: object
) -> None:
    flag, wanted = FLAGS[name]
    run(flag, **{name: text})
    assert getattr(settings[0], setting) == wanted


def test_the_defaults_are_those_of_the_specification_but_for_what_costs_nothing_here(
    settings: list[Settings],
) -> None:
    """More rounds at once than 5: rounds wait for the API server most of the time."""
    run()
    (found,) = settings
    assert found.reconcile_interval == timedelta(seconds=30)
    assert (found.metrics_bind_addr, found.health_probe_bind_addr) == (":8080", ":8081")
    assert found.leader_elect
    assert found.workers == 16


def test_kubeconfig_is_found_by_its_variable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whether it names a file that is there or not: nothing else is looked at."""
    missing = tmp_path / "none"
    monkeypatch.setenv("KUBECONFIG", str(missing))
    result = CliRunner().invoke(operator, ["run"])
    assert result.exit_code == 1
