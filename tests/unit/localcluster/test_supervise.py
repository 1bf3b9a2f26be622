"""The supervisor keeps a program running, and takes it along when it goes."""

import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from novacron.localcluster.identity import Identity

SUPERVISE = (sys.executable, "-m", "novacron.localcluster.supervise")
DEADLINE_SECONDS = 20.0


@pytest.fixture
def supervised():
    """Start a supervisor over a Python script; both are gone when the test ends."""
    started = []

    def start(script: str, *arguments: object) -> "subprocess.Popen[bytes]":
        command = [*SUPERVISE, sys.executable, "-c", script, *map(str, arguments)]
        started.append(subprocess.Popen(command, stdout=subprocess.DEVNULL))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def _lines(path: Path, count: int) -> list[str]:
    end = time.monotonic() + DEADLINE_SECONDS
    while not path.exists() or len(path.read_text().splitlines()) < count:
        assert time.monotonic() < end, f"{path} has too few lines"
        time.sleep(0.02)
    return path.read_text().splitlines()


NOTE = "import os, sys; open(sys.argv[1], 'a').write(f'{os.getpid()}\\n'); "


def test_a_program_that_ends_is_started_again(supervised, tmp_path):
    """An operator that loses its lease exits at once and counts on being started again."""
    supervised(NOTE + "sys.exit(3)", tmp_path / "runs")
    assert len(set(_lines(tmp_path / "runs", 2))) == 2


def test_wrong_arguments_are_not_tried_again(supervised, tmp_path):
    """They stay wrong, and the user should hear of it at once."""
    supervisor = supervised(NOTE + "sys.exit(2)", tmp_path / "runs")
    assert supervisor.wait(DEADLINE_SECONDS) == 2
    assert len(_lines(tmp_path / "runs", 1)) == 1


def test_a_stop_is_handed_on_and_waited_for(supervised, tmp_path):
    """The operator gives back its leases in the time between the signal and the end."""
    script = (
        "import signal, time\n"
        "def leave(*_): open(sys.argv[1], 'a').write('left\\n'); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, leave)\n"
        "open(sys.argv[1], 'a').write('ready\\n')\n"
        "time.sleep(600)"
    )
    supervisor = supervised("import sys\n" + script, tmp_path / "runs")
    _lines(tmp_path / "runs", 1)
    supervisor.send_signal(signal.SIGTERM)
    assert supervisor.wait(DEADLINE_SECONDS) == 0
    assert _lines(tmp_path / "runs", 2) == ["ready", "left"]


def test_a_killed_supervisor_takes_its_program_along(supervised, tmp_path):
    """Otherwise the next `up` would run a second operator beside the orphan."""
    supervisor = supervised(NOTE + "import time; time.sleep(600)", tmp_path / "runs")
    program = Identity.of(int(_lines(tmp_path / "runs", 1)[0]))
    supervisor.kill()
    end = time.monotonic() + DEADLINE_SECONDS
    while program.alive():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_what_a_program_left_is_buried_at_once(supervised, tmp_path):
    """libvirt waits until a guest is gone altogether, and a zombie is not."""
    script = (
        "import subprocess, time\n"
        "left = '(sleep 0.2 & echo $! >>\"$0\")'\n"
        "subprocess.run(['sh', '-c', left, sys.argv[1]], check=True)\n"
        "time.sleep(600)"
    )
    supervised("import sys\n" + script, tmp_path / "orphans")
    orphan = Path("/proc", _lines(tmp_path / "orphans", 1)[0])
    end = time.monotonic() + DEADLINE_SECONDS
    with suppress(FileNotFoundError):
        while state := (orphan / "stat").read_text().rpartition(")")[2].split():
            assert state[1] != "1", "the first process of the machine has to bury it"
            assert time.monotonic() < end
            time.sleep(0.02)
