"""From the first create to all Running: our operator beside controller-runtime and kopf.

Every round gives every contender a cluster of its own, so that none meets the objects, the
webhooks or the warm caches of another; the order is turned round each time.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict

from bench.contenders import CONTENDERS, OURS, YARDSTICK, Contender, Unavailable
from bench.report import Bar, at_least, at_most, conclude, show_table
from bench.trial import Round, rate_round
from novacron.localcluster.errors import LocalClusterError

__all__ = ["main", "measure_rate"]

MACHINES = 2_000
ROUNDS = 2
Rounds = dict[str, list[Round]]


def measure_rate(
    names: Sequence[str], machines: int = MACHINES, rounds: int = ROUNDS, *, delete: bool = False
) -> bool:
    """Run all rounds, print and keep the figures, and say whether every bar is held."""
    contenders, missing = _available(names)
    results: Rounds = {contender.name: [] for contender in contenders}
    for number in range(rounds):
        for contender in contenders if number % 2 == 0 else reversed(contenders):
            # One that fails must not cost the others their figures.
            try:
                result = rate_round(contender, machines, delete=delete)
            except (RuntimeError, LocalClusterError) as failure:
                missing[contender.name] = str(failure)
                continue
            results[contender.name].append(result)
            print(_line(number, result), flush=True)
    results = {name: done for name, done in results.items() if done}
    _show(results, machines)
    for name, why in missing.items():
        print(f"{name} was not measured in full: {why}")
    figures = {
        "machines": machines,
        "rounds": {name: [asdict(each) for each in done] for name, done in results.items()},
        "missing": missing,
    }
    return conclude("rate", figures, _bars(results)) and not missing


def _available(names: Sequence[str]) -> tuple[list[Contender], dict[str, str]]:
    found: list[Contender] = []
    missing: dict[str, str] = {}
    for name in names:
        try:
            CONTENDERS[name].prepare()
            found.append(CONTENDERS[name])
        except Unavailable as unavailable:
            missing[name] = str(unavailable)
    return found, missing


def _line(number: int, result: Round) -> str:
    deleted = f", deleted in {result.deleted_s:.1f} s" if result.deleted_s is not None else ""
    return (
        f"round {number + 1} {result.contender}: all Running after {result.running_s:.1f} s "
        f"(created in {result.created_s:.1f} s), {result.cpu_s:.2f} s CPU{deleted}; "
        f"{result.others_share:.0%} of the machine went to others"
    )


OTHERS = "others' share of the machine, %"
FIGURES: dict[str, Callable[[Round], float]] = {
    "machines/s": lambda done: done.rate,
    "CPU s": lambda done: done.cpu_s,
    "CPU ms/machine": lambda done: done.cpu_ms,
    "peak MiB": lambda done: done.peak_mib,
    "writes/machine": lambda done: done.writes_per_machine,
    "server CPU ms/machine": lambda done: done.server_cpu_ms,
    "start CPU s": lambda done: done.start_cpu_s,
    "ready s": lambda done: done.ready_s,
    OTHERS: lambda done: 100 * done.others_share,
}


def _best(done: Sequence[Round], figure: str) -> float:
    """Return the figure of the fastest round: whatever else the machine does only ever slows."""
    return FIGURES[figure](max(done, key=lambda each: each.rate))


def _ratio(results: Rounds, name: str, figure: str) -> float:
    return _best(results[name], figure) / _best(results[YARDSTICK.name], figure)


def _show(results: Rounds, machines: int) -> None:
    rows = [(figure, *(_cell(results, name, figure) for name in results)) for figure in FIGURES]
    title = f"{machines} machines, the best round of each (and the ratio to {YARDSTICK.name})"
    show_table(title, ("", *results), rows)


def _cell(results: Rounds, name: str, figure: str) -> str:
    value = f"{_best(results[name], figure):.2f}"
    if YARDSTICK.name not in results or figure == OTHERS:
        return value
    return f"{value} ({_ratio(results, name, figure):.2f}x)"


def _bars(results: Rounds) -> list[Bar]:
    ours = OURS.name
    if ours not in results or YARDSTICK.name not in results:
        return []
    writes = _best(results[ours], "writes/machine")
    return [
        at_least("rate against controller-runtime", _ratio(results, ours, "machines/s"), 0.9),
        at_most("CPU against controller-runtime", _ratio(results, ours, "CPU ms/machine"), 1.5),
        at_most("memory against controller-runtime", _ratio(results, ours, "peak MiB"), 1.5),
        at_most("writes per machine, events apart", writes, 3),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(prog="python -m bench.operator_rate", description=__doc__)
    parser.add_argument("--machines", type=int, default=MACHINES)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--contenders", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--delete", action="store_true", help="measure the deletion as well")
    parser.add_argument("--check", action="store_true", help="fail when a bar is missed")
    given = parser.parse_args(arguments)
    held = measure_rate(given.contenders, given.machines, given.rounds, delete=given.delete)
    return 0 if held or not given.check else 1


if __name__ == "__main__":
    sys.exit(main())
