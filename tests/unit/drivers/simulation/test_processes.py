"""Several processes share one file, and any of them may be killed at any instruction."""

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from random import Random
from time import monotonic, sleep

from novacron.core.machine import Power
from novacron.drivers.simulation import World
from unit.drivers.simulation.books import check_books

HERE = Path(__file__).parent
PYTHONPATH = os.pathsep.join([str(HERE.parents[2]), os.environ.get("PYTHONPATH", "")])


def _start(script: str, *args: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(HERE / script), *map(str, args)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": PYTHONPATH},
        text=True,
    )


@contextmanager
def _workers(what: str, path: Path, number: int) -> Iterator[list[subprocess.Popen[str]]]:
    """Start processes that wait for each other, so that they do their work at the same time."""
    workers = [_start("worker.py", what, path, f"worker-{me}") for me in range(number)]
    try:
        for worker in workers:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "ready\n"
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.write("go\n")
            worker.stdin.flush()
        yield workers
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()


def _finish(workers: list[subprocess.Popen[str]]) -> None:
    for worker in workers:
        _, errors = worker.communicate(timeout=60)
        assert worker.returncode == 0, errors


def test_processes_that_make_the_same_machines_at_once_make_each_once(path: Path) -> None:
    """The file is new, too: the first of them makes it while the others want to use it."""
    with _workers("same", path, 4) as workers:
        _finish(workers)
    with World(path) as world:
        machines = world.machines()
    assert sorted(m.uid or "" for m in machines) == sorted(f"uid-{n}" for n in range(150))
    assert len({m.addresses for m in machines}) == 150
    assert {m.power for m in machines} == {Power.ON}
    check_books(path)


def test_processes_that_fill_a_host_at_once_do_not_overfill_it(path: Path) -> None:
    """Room is counted in the file, inside the transaction that takes it."""
    with _workers("fill", path, 4) as workers:
        _finish(workers)
    with World(path) as world:
        machines = world.machines()
    assert sum(m.resources.vcpus for m in machines) == 200
    check_books(path)


def test_processes_killed_in_the_middle_leave_the_books_right(path: Path) -> None:
    """SIGKILL asks nobody; whoever comes next goes on with what is there."""
    random = Random(3)
    for _ in range(3):
        with _workers("churn", path, 2) as workers:
            _until_something_is_there(path)
            for worker in workers:
                sleep(random.uniform(0.01, 0.12))
                worker.send_signal(signal.SIGKILL)
                assert worker.wait(timeout=30) == -signal.SIGKILL
        check_books(path)
    with World(path) as world:
        assert world.machines()


def _until_something_is_there(path: Path) -> None:
    deadline = monotonic() + 30
    while True:
        # One who is killed before it made the tables leaves a file without any, and that is right.
        with suppress(sqlite3.OperationalError), closing(sqlite3.connect(path)) as file:
            if file.execute("SELECT count(*) FROM machines").fetchone()[0]:
                return
        assert monotonic() < deadline, "nothing was made"
        sleep(0.01)


def test_a_process_killed_at_any_statement_has_done_a_thing_or_not(tmp_path: Path) -> None:
    """Played again to its end, the story ends as if nobody had been killed."""
    process = _start("killed.py", tmp_path)
    printed, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert int(printed) > 100
