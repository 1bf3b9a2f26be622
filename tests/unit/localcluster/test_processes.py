"""Processes outlive who started them, are found again, and are never confused with others."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from datetime import timedelta

import pytest

from novacron.localcluster.errors import PortTaken, ProcessFailed
from novacron.localcluster.identity import Identity
from novacron.localcluster.processes import Processes, Program

SOON = timedelta(seconds=20)
SLEEP = (sys.executable, "-c", "import time; time.sleep(600)")
STUBBORN = (
    sys.executable,
    "-c",
    """import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print('deaf', flush=True)
time.sleep(600)""",
)
PARENT = (
    sys.executable,
    "-c",
    """import subprocess, sys, time
child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])
print(child.pid, flush=True)
time.sleep(600)""",
)


@pytest.fixture
def processes(tmp_path):
    """Records in a directory of the test's own; whatever was started is stopped."""
    found = Processes(tmp_path / "run")
    yield found
    for record in found.directory.glob("*.pid.json"):
        found.stop(record.name.removesuffix(".pid.json"), timedelta(0))


def _start_and_wait(processes, script):
    processes.start(Program("broken", (sys.executable, "-c", script)))
    processes.wait_ready("broken", lambda: False, SOON)


def _eventually(probe):
    end = time.monotonic() + SOON.total_seconds()
    while not probe():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_process_is_started_once(processes):
    """Starting what runs already must neither start a second nor disturb the first."""
    assert processes.start(Program("sleeper", SLEEP))
    first = processes.running("sleeper")
    assert not processes.start(Program("sleeper", SLEEP))
    assert processes.running("sleeper") == first


def test_another_command_line_replaces_the_process(processes):
    """After an upgrade `up` must run what is installed now."""
    processes.start(Program("sleeper", SLEEP))
    first = processes.running("sleeper")
    assert processes.start(Program("sleeper", SLEEP, version="2"))
    assert processes.running("sleeper") != first
    assert not first.alive()


def test_it_has_a_session_of_its_own(processes):
    """Ctrl-C in the terminal and the end of the shell must not reach it."""
    processes.start(Program("sleeper", SLEEP))
    assert os.getsid(processes.running("sleeper").pid) == processes.running("sleeper").pid


def test_a_killed_process_is_known_to_be_gone(processes):
    """A dead child that nobody waited for still has a process id."""
    processes.start(Program("sleeper", SLEEP))
    processes.kill("sleeper")
    assert processes.running("sleeper") is None
    assert processes.start(Program("sleeper", SLEEP))


def test_whoever_has_the_process_id_now_is_left_alone(processes):
    """After a reboot a recorded id belongs to somebody else, who must not be stopped."""
    bystander = subprocess.Popen(SLEEP)
    try:
        processes.start(Program("sleeper", SLEEP))
        processes.kill("sleeper")
        record = processes.directory / "sleeper.pid.json"
        known = json.loads(record.read_text())
        theirs = asdict(Identity.of(bystander.pid))
        for change in ({"started_ticks": theirs["started_ticks"] - 1}, {"boot": "another"}):
            record.write_text(json.dumps({**known, **theirs, **change}))
            assert processes.running("sleeper") is None
            assert not processes.stop("sleeper")
            assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": 1}', "null"])
def test_a_torn_record_means_not_running(processes, content):
    """A crash in the middle of writing must not stop the next start."""
    processes.directory.mkdir()
    (processes.directory / "sleeper.pid.json").write_text(content)
    assert processes.running("sleeper") is None
    assert processes.start(Program("sleeper", SLEEP))


def test_a_process_without_a_record_is_found_by_its_mark(processes):
    """Killed between starting a process and noting it, we must not leave a second one behind."""
    processes.start(Program("sleeper", SLEEP))
    first = processes.running("sleeper")
    (processes.directory / "sleeper.pid.json").unlink()
    processes.start(Program("sleeper", SLEEP))
    assert not first.alive()
    assert processes.running("sleeper") != first


def test_one_that_does_not_listen_is_forced(processes):
    """Stopping must end, whatever the program thinks of it."""
    processes.start(Program("deaf", STUBBORN))
    identity = processes.running("deaf")
    processes.wait_ready("deaf", lambda: "deaf" in processes.tail("deaf"), SOON)
    assert processes.stop("deaf", timedelta(seconds=0.2))
    assert not identity.alive()


def test_children_go_with_their_parent(processes):
    """`down` leaves no process behind, also not those that our processes started."""
    processes.start(Program("parent", PARENT))
    processes.wait_ready("parent", lambda: processes.tail("parent").strip().isdigit(), SOON)
    child = Identity.of(int(processes.tail("parent")))
    processes.stop("parent")
    _eventually(lambda: not child.alive())


def test_a_failure_quotes_the_log(processes):
    """The reason is in the log; nobody should have to go and look for it."""
    script = "import sys; sys.exit('the disk is on fire')"
    with pytest.raises(ProcessFailed, match=r"broken stopped.*\n.*the disk is on fire"):
        _start_and_wait(processes, script)


def test_a_taken_port_is_told_apart(processes):
    """The cluster chooses another port then, instead of giving up."""
    script = "import sys; sys.exit('listen tcp 127.0.0.1:1: bind: address already in use')"
    with pytest.raises(PortTaken):
        _start_and_wait(processes, script)


def test_one_that_never_becomes_ready_is_given_up(processes):
    """A start that hangs would be worse than one that fails."""
    processes.start(Program("sleeper", SLEEP))
    with pytest.raises(ProcessFailed, match="was not ready after 0 s"):
        processes.wait_ready("sleeper", lambda: False, timedelta(seconds=0.1))


def test_a_program_that_does_not_exist_is_one_sentence(processes):
    """A cache that lost a file must not end in a trace."""
    with pytest.raises(ProcessFailed, match="ghost cannot be started"):
        processes.start(Program("ghost", ("/nonexistent/program",)))


def test_a_zombie_is_not_alive():
    """Only whoever started a process can collect it; for all others it is simply over."""
    child = subprocess.Popen(SLEEP)
    identity = Identity.of(child.pid)
    child.send_signal(signal.SIGKILL)
    assert identity.wait(SOON)
    assert not identity.alive()
    child.wait()
