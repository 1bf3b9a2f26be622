"""Plain processes that outlive the command that started them.

Each has a name, a record of its identity, a log file and a session of its own. What the
programs do is not known here.
"""

import hashlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import BinaryIO, NamedTuple

from novacron.localcluster.errors import PortTaken, ProcessFailed
from novacron.localcluster.identity import Identity, marked
from novacron.workplace.files import private_directory, write_private

__all__ = ["GRACE", "MARK", "Processes", "Program"]

GRACE = timedelta(seconds=10)
POLL_SECONDS = 0.05
LOG_LIMIT_BYTES = 20 * 2**20
TAIL_LINES = 8
MARK = "NOVACRON_PROCESS"

# Children this interpreter started itself: somebody must collect their exit status.
_CHILDREN: dict[int, "subprocess.Popen[bytes]"] = {}


@dataclass(frozen=True, slots=True)
class Program:
    """What to run, and under which name to find it again.

    ``version`` stands for whatever the program reads only when it starts: another version
    means that a running process is out of date. ``grace`` is what it may need to end.
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    version: str = ""
    grace: timedelta = GRACE

    @property
    def fingerprint(self) -> str:
        """Return what is the same for the same program started the same way."""
        content = json.dumps([self.command, sorted(self.environment.items()), self.version])
        return hashlib.sha256(content.encode()).hexdigest()


class _Record(NamedTuple):
    identity: Identity
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Processes:
    """The processes whose records lie in one directory."""

    directory: Path

    def start(self, program: Program) -> bool:
        """Start the program unless it runs just so already; say whether it was started."""
        record = self._read(program.name)
        if record and record.identity.alive() and record.fingerprint == program.fingerprint:
            return False
        self.stop(program.name, program.grace)
        identity = self._spawn(program)
        content = json.dumps({**asdict(identity), "fingerprint": program.fingerprint})
        write_private(self._record(program.name), content)
        return True

    def running(self, name: str) -> Identity | None:
        """Return the named process if it is alive."""
        record = self._read(name)
        return record.identity if record and record.identity.alive() else None

    def stop(self, name: str, grace: timedelta = GRACE) -> bool:
        """Ask the process to end, force it after the grace; say whether there was one."""
        identity = self.running(name)
        if identity:
            identity.signal(signal.SIGTERM)
            if not identity.wait(grace):
                identity.signal(signal.SIGKILL, group=True)
                identity.wait(grace)
        self._clear(name)
        return identity is not None

    def kill(self, name: str) -> None:
        """End the process at once, as a crash would; its record stays behind as after one."""
        identity = self.running(name)
        if identity:
            identity.signal(signal.SIGKILL)
            identity.wait(GRACE)
            _collect()

    def wait_ready(
        self, name: str, probe: Callable[[], bool], deadline: timedelta, label: str = ""
    ) -> None:
        """Return when the probe says yes; fail when the process ends or time runs out."""
        end = time.monotonic() + deadline.total_seconds()
        while not probe():
            if self.running(name) is None:
                raise self._failure(name, "stopped")
            if time.monotonic() > end:
                seconds = int(deadline.total_seconds())
                raise self._failure(name, f"was not {label or 'ready'} after {seconds} s")
            time.sleep(POLL_SECONDS)

    def log(self, name: str) -> Path:
        """Return where the named process writes its output."""
        return self.directory / f"{name}.log"

    def tail(self, name: str, lines: int = TAIL_LINES) -> str:
        """Return the last lines of the log."""
        try:
            text = self.log(name).read_text(errors="replace")
        except OSError:
            return ""
        return "\n".join(line[:400] for line in text.splitlines()[-lines:])

    def _spawn(self, program: Program) -> Identity:
        private_directory(self.directory)
        environment = {**os.environ, **program.environment, MARK: self._mark(program.name)}
        with self._open_log(program.name) as log:
            try:
                child = subprocess.Popen(
                    program.command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=environment,
                    cwd=self.directory,
                    start_new_session=True,
                )
            except OSError as error:
                raise ProcessFailed(f"{program.name} cannot be started: {error}") from error
        identity = Identity.of(child.pid)
        if identity is None:
            child.wait()
            raise self._failure(program.name, "stopped")
        _CHILDREN[child.pid] = child
        return identity

    def _read(self, name: str) -> "_Record | None":
        try:
            known = json.loads(self._record(name).read_text())
            fingerprint = known.pop("fingerprint")
            return _Record(Identity(**known), fingerprint)
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None

    def _clear(self, name: str) -> None:
        """End whatever the named process left behind: strays, children, its record."""
        for stray in marked(f"{MARK}={self._mark(name)}"):
            stray.signal(signal.SIGKILL)
            stray.wait(GRACE)
        _collect()
        self._record(name).unlink(missing_ok=True)

    def _record(self, name: str) -> Path:
        return self.directory / f"{name}.pid.json"

    def _mark(self, name: str) -> str:
        return f"{self.directory.absolute()}:{name}"

    def _open_log(self, name: str) -> BinaryIO:
        path = self.log(name)
        if path.exists() and path.stat().st_size > LOG_LIMIT_BYTES:
            path.replace(path.with_suffix(".log.old"))
        path.touch(mode=0o600)
        return path.open("ab")

    def _failure(self, name: str, what: str) -> ProcessFailed:
        tail = self.tail(name)
        kind = PortTaken if "address already in use" in tail else ProcessFailed
        quoted = f"\n{tail}" if tail else " and wrote nothing"
        return kind(f"{name} {what}; the end of {self.log(name)}:{quoted}")


def _collect() -> None:
    for pid, child in list(_CHILDREN.items()):
        if child.poll() is not None:
            del _CHILDREN[pid]
