"""The keeper of a container: one at a time, nothing without its record, nothing left behind."""

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from novacron.localcluster.node.ability import inability
from novacron.localcluster.node.image import OwnImage
from novacron.localcluster.node.keeper import BUSY
from novacron.localcluster.node.order import Mount, Order, User
from novacron.localcluster.node.records import ContainerRecord

pytestmark = pytest.mark.skipif(bool(inability()), reason=inability() or "")

IMAGE = OwnImage("novacron/novacron")
SOON = timedelta(seconds=10)


@pytest.fixture
def order(tmp_path):
    """An order for a container that prints its first argument."""
    return Order(
        directory=str(tmp_path),
        attempt=0,
        hostname="there",
        command=["python", "-u", "-c", "import sys; print(sys.argv[1])", "hello"],
        environment=IMAGE.environment(),
        working_directory="/",
        user=User(65532, 65532),
        root=IMAGE.root({}, read_only=False),
        mounts=[],
    )


def _spawn(order, data=None):
    keeper = subprocess.Popen(
        [sys.executable, "-m", "novacron.localcluster.node.keeper"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert keeper.stdin is not None
    keeper.stdin.write(order.encode() if data is None else data)
    keeper.stdin.close()
    return keeper


def _finish(keeper):
    said = keeper.stdout.read()
    keeper.stdout.close()
    return said, keeper.wait(10)


def _running(order, script):
    """Start a container that runs a script, and return its keeper and its record."""
    keeper = _spawn(replace(order, command=["python", "-u", "-c", script]))
    assert keeper.stdout.readline() == b"started\n"
    record = ContainerRecord(Path(order.directory))
    return keeper, record, record.start()


def test_a_run_is_recorded_from_its_start_to_its_end(order, tmp_path):
    """A new agent has nothing but this."""
    assert _finish(_spawn(order)) == (b"started\n", 0)
    record = ContainerRecord(tmp_path)
    assert record.start().attempt == 0
    assert record.exit(0).code == 0
    assert record.log(0).read_text().endswith(" stdout F hello\n")


def test_the_exit_code_is_the_programs_own(order, tmp_path):
    """Jobs decide by it."""
    _finish(_spawn(replace(order, command=["python", "-c", "raise SystemExit(7)"])))
    assert ContainerRecord(tmp_path).exit(0).code == 7


def test_a_second_keeper_of_the_same_container_gives_up(order):
    """An agent that died after starting one and before knowing it would otherwise have two."""
    keeper, record, start = _running(order, "import time; time.sleep(600)")
    assert _finish(_spawn(replace(order, attempt=1))) == (b"", BUSY)
    assert record.start() == start
    start.process.signal(signal.SIGKILL)
    _finish(keeper)
    assert record.exit(0).code == 128 + signal.SIGKILL


def test_an_order_that_was_cut_short_starts_nothing(order, tmp_path):
    """The agent was killed while it wrote."""
    _, code = _finish(_spawn(order, order.encode()[:-20]))
    assert code != 0
    assert ContainerRecord(tmp_path).start() is None


def test_a_killed_keeper_takes_everything_along(order):
    """Also what its container started."""
    script = "import subprocess, time; subprocess.Popen(['sleep', '600']); time.sleep(600)"
    keeper, record, start = _running(order, script)
    children = Path(f"/proc/{start.process.pid}/task/{start.process.pid}/children")
    end = time.monotonic() + 10
    while not children.read_text():
        assert time.monotonic() < end
    child = int(children.read_text())
    keeper.kill()
    _finish(keeper)
    assert start.process.wait(SOON)
    assert not Path(f"/proc/{child}").exists() or "Z" in Path(f"/proc/{child}/stat").read_text()
    assert (record.exit(0).code, record.exit(0).message) == (137, "its keeper was killed")


def test_a_place_that_cannot_be_mounted_is_told(order, tmp_path):
    """The container's status shows this sentence."""
    mounts = [Mount("/etc/passwd", "/usr")]
    assert _finish(_spawn(replace(order, mounts=mounts)))[0] == b"failed\n"
    how = ContainerRecord(tmp_path).exit(0)
    assert (how.code, how.reason) == (128, "StartError")
    assert how.message == "cannot start: /usr: Not a directory"


def test_a_volume_over_our_own_programs_does_not_hide_them(order, tmp_path):
    """Charts mount an empty /tmp; in a developer's checkout our programs may lie there."""
    above = Path(sys.prefix).parents[-2]
    (tmp_path / "empty").mkdir()
    mounts = [Mount(str(tmp_path / "empty"), str(above))]
    assert _finish(_spawn(replace(order, mounts=mounts)))[0] == b"started\n"
    assert ContainerRecord(tmp_path).exit(0).code == 0


def test_nothing_of_it_is_seen_on_the_machine(order, tmp_path):
    """Its mounts are its own."""
    keeper, _, start = _running(order, "import time; time.sleep(600)")
    assert str(tmp_path) not in Path("/proc/self/mountinfo").read_text()
    inside = Path(f"/proc/{start.process.pid}/mountinfo").read_text()
    assert " /proc " in inside
    theirs, ours = Path(f"/proc/{start.process.pid}/ns"), Path("/proc/self/ns")
    kinds = ("mnt", "pid", "uts", "ipc", "net")
    shared = [kind for kind in kinds if (theirs / kind).readlink() == (ours / kind).readlink()]
    # Without a handle of another network it has the machine's.
    assert shared == ["net"]
    start.process.signal(signal.SIGKILL)
    _finish(keeper)


def test_what_is_left_of_an_order_reads_back(order):
    """JSON and back."""
    assert Order.decode(order.encode()).encode() == order.encode()
    with pytest.raises(ValueError, match="no order"):
        Order.decode(json.dumps({"attempt": 1}).encode())
