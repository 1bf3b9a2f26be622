"""Keeps one run of one container: starts it in namespaces of its own, writes its log and its end.

Run by the agent as ``python -m novacron.localcluster.node.keeper`` with the order on standard
input. It outlives the agent, which finds it again by its record. The container's process is
the first of a process namespace, so that nothing it started is left when it ends; and it ends
with its keeper. Standard library only: there is one for every container.
"""

import fcntl
import os
import select
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from novacron.localcluster.identity import Identity
from novacron.localcluster.node.kernel import (
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUTS,
    setns,
    unshare,
)
from novacron.localcluster.node.logfile import LogFile
from novacron.localcluster.node.order import Order
from novacron.localcluster.node.privileges import become
from novacron.localcluster.node.records import ContainerRecord, Exit, Start, now
from novacron.localcluster.node.root import enter_root

__all__ = ["BUSY", "keep"]

# Another keeper has this container in its hands: the agent did not know of it.
BUSY = 75
CANNOT_START = 128
CHUNK = 2**16


def keep(order: Order) -> int:
    """Run the container until it ends; return our own exit code."""
    record = ContainerRecord(Path(order.directory))
    handle = os.open(record.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return BUSY
    if order.network is not None:
        setns(order.network, CLONE_NEWNET)
        os.close(order.network)
    return _Keeper(order, record).run()


class _Keeper:
    def __init__(self, order: Order, record: ContainerRecord) -> None:
        self._order = order
        self._record = record
        # All of these close when the container's own program begins.
        self._go, self._told = os.pipe()
        self._failure, self._failed = os.pipe()
        self._output, self._out = os.pipe()
        self._errors, self._err = os.pipe()

    def run(self) -> int:
        unshare(CLONE_NEWPID)
        pid = os.fork()
        if pid == 0:
            self._become_container()
        for end in (self._go, self._failed, self._out, self._err):
            os.close(end)
        process, keeper = Identity.of(pid), Identity.of(os.getpid())
        if process is None or keeper is None:
            return CANNOT_START
        since = now()
        self._record.started(Start(self._order.attempt, since, keeper, process))
        # From here on whoever looks finds it; only now may it do anything.
        os.write(self._told, b".")
        os.close(self._told)
        failure = _read_all(self._failure)
        with suppress(OSError):
            os.write(sys.stdout.fileno(), b"failed\n" if failure else b"started\n")
        os.close(sys.stdout.fileno())
        self._write_log()
        self._record.ended(self._order.attempt, _exit(pid, since, failure))
        return 0

    def _become_container(self) -> NoReturn:
        order = self._order
        try:
            for end in (self._told, self._failure):
                os.close(end)
            os.setsid()
            os.umask(0o022)
            unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC)
            _set_hostname(order.hostname)
            # Without the word of the keeper there is no record: then nobody would ever find us.
            if not os.read(self._go, 1):
                os._exit(CANNOT_START)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(self._out, 1)
            os.dup2(self._err, 2)
            enter_root(order)
            become(order.user)
            if _abandoned(self._failed):
                os._exit(CANNOT_START)
            os.chdir(order.working_directory)
            _default_signals()
            os.execvpe(order.command[0], list(order.command), order.environment)  # noqa: S606
        except OSError as error:
            what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
            os.write(self._failed, what.encode())
        finally:
            os._exit(CANNOT_START)

    def _write_log(self) -> None:
        log = LogFile(self._record.log(self._order.attempt))
        streams = {self._output: "stdout", self._errors: "stderr"}
        poll = select.poll()
        for handle in streams:
            poll.register(handle, select.POLLIN)
        while streams:
            for handle, _ in poll.poll():
                if data := os.read(handle, CHUNK):
                    log.write(streams[handle], data)
                else:
                    poll.unregister(handle)
                    del streams[handle]
        log.close()


def _exit(pid: int, since: str, failure: bytes) -> Exit:
    status = os.waitpid(pid, 0)[1]
    if failure:
        message = f"cannot start: {failure.decode(errors='replace')}"
        return Exit(CANNOT_START, since, now(), "StartError", message)
    if os.WIFSIGNALED(status):
        return Exit(128 + os.WTERMSIG(status), since, now())
    return Exit(os.WEXITSTATUS(status), since, now())


def _abandoned(pipe: int) -> bool:
    # The kernel ends us with our keeper only from now on; it may have died just before.
    poll = select.poll()
    poll.register(pipe, 0)
    return bool(poll.poll(0))


def _set_hostname(name: str) -> None:
    import socket  # noqa: PLC0415 - needed once, in the child alone

    socket.sethostname(name)


def _default_signals() -> None:
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


def _read_all(handle: int) -> bytes:
    content = b""
    while data := os.read(handle, CHUNK):
        content += data
    os.close(handle)
    return content


if __name__ == "__main__":
    sys.exit(keep(Order.decode(sys.stdin.buffer.read())))
