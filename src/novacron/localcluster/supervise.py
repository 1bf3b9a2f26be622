"""Keeps one program running: starts it again when it ends, as a kubelet would.

Run as ``python -m novacron.localcluster.supervise PROGRAM [ARGUMENT…]``. Stops the program in
good order when it is told to stop itself. Standard library only: it stays in memory for weeks.

What the program leaves running becomes a child of the supervisor and is buried as soon as it
ends. libvirt waits for that whenever a guest stops, and not every first process of a machine or
a container does it, or does it soon.
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

__all__ = ["supervise"]

FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0
HEALTHY_AFTER_SECONDS = 60.0
USAGE_ERROR = 2
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def supervise(command: Sequence[str]) -> int:
    """Run the command again and again until told to stop; return its last exit code."""
    stopping = threading.Event()
    child: subprocess.Popen[bytes] | None = None

    def stop(_number: int, _frame: object) -> None:
        stopping.set()
        if child:
            child.terminate()

    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    pause = FIRST_PAUSE_SECONDS
    while True:
        started = time.monotonic()
        child = subprocess.Popen(command, preexec_fn=_die_with_parent)  # noqa: PLW1509 - one thread
        if stopping.is_set():
            child.terminate()
        code = _wait(child)
        # Wrong arguments stay wrong however often they are tried.
        if stopping.is_set() or code == USAGE_ERROR:
            return code
        lived = time.monotonic() - started
        pause = FIRST_PAUSE_SECONDS if lived > HEALTHY_AFTER_SECONDS else pause
        print(f"{command[0]} ended with {code}; again in {pause:.1f} s", flush=True)  # noqa: T201
        stopping.wait(pause)
        pause = min(pause * 2, LONGEST_PAUSE_SECONDS)


def _wait(child: "subprocess.Popen[bytes]") -> int:
    """Return the program's exit code, burying whoever else ends until then."""
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == child.pid:
            child.returncode = os.waitstatus_to_exitcode(status)
            return child.returncode


def _die_with_parent() -> None:
    """Have the kernel kill the program when the supervisor itself is killed."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value)


if __name__ == "__main__":
    sys.exit(supervise(sys.argv[1:]))
