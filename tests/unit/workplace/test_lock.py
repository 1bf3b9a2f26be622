"""One command at a time, and the refused one is told who is at work."""

import os
import re
import subprocess
import sys
import threading

import pytest

from novacron.workplace.errors import AtWork
from novacron.workplace.lock import holding

HOLD = (
    "import sys, time; from pathlib import Path; from novacron.workplace.lock import holding\n"
    "with holding(Path(sys.argv[1]), 'novacron up'):\n"
    "    print('held', flush=True); time.sleep(600)"
)


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the lock."""
    command = [sys.executable, "-c", HOLD, str(tmp_path / "lock")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_the_second_is_told_who_holds_it(tmp_path, holder):
    """One sentence with command and process id is enough to know what to do."""
    expected = re.escape(f"(`novacron up`, process {holder.pid})")
    with pytest.raises(AtWork, match=expected), holding(tmp_path / "lock", "novacron down"):
        pass


def test_a_killed_holder_leaves_no_lock(tmp_path, holder):
    """After a kill -9 the next command must work without anybody removing files."""
    holder.kill()
    holder.wait()
    with holding(tmp_path / "lock", "novacron up"):
        assert f"process {os.getpid()}" in (tmp_path / "lock").read_text()


def test_a_lock_that_was_purged_does_not_lock_anything(tmp_path):
    """Holding a file without a name would let two commands work at once."""
    path = tmp_path / "lock"
    with holding(path, "novacron purge"):
        path.unlink()
        with holding(path, "novacron up"), pytest.raises(AtWork), holding(path, "third"):
            pass


def test_the_patient_wait_for_their_turn(tmp_path):
    """Two builds of the same thing: the second waits and finds it done."""
    order: list[str] = []
    waiting = threading.Event()

    def second() -> None:
        with holding(tmp_path / "lock", "build", on_wait=waiting.set):
            order.append("second")

    with holding(tmp_path / "lock", "build"):
        thread = threading.Thread(target=second)
        thread.start()
        assert waiting.wait(20)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
