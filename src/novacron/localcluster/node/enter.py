"""Runs a command inside a running container, for probes; ends with the command's exit code.

Run by the agent as ``python -m novacron.localcluster.node.enter`` with the errand on standard
input. Standard library only.
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import NoReturn

from novacron.localcluster.node.kernel import (
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUTS,
    setns,
)
from novacron.localcluster.node.order import User
from novacron.localcluster.node.privileges import become

__all__ = ["Errand"]

# The mount namespace comes last: the others are found through the machine's /proc.
KINDS = {
    "net": CLONE_NEWNET,
    "uts": CLONE_NEWUTS,
    "ipc": CLONE_NEWIPC,
    "pid": CLONE_NEWPID,
    "mnt": CLONE_NEWNS,
}
CANNOT_START = 126


@dataclass(frozen=True, slots=True)
class Errand:
    """What to run beside which process, and as whom."""

    pid: int
    command: Sequence[str]
    environment: Mapping[str, str]
    working_directory: str
    user: User

    def encode(self) -> bytes:
        """Return it as bytes that ``decode`` reads."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decode(cls, data: bytes) -> "Errand":
        """Return what was encoded."""
        known = json.loads(data)
        return cls(user=User(**known.pop("user")), **known)


def run(errand: Errand) -> int:
    """Run the command and return its exit code."""
    handles = {kind: os.open(f"/proc/{errand.pid}/ns/{kind}", os.O_RDONLY) for kind in KINDS}
    for kind, handle in handles.items():
        setns(handle, KINDS[kind])
        os.close(handle)
    pid = os.fork()
    if pid == 0:
        _become_command(errand)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _become_command(errand: Errand) -> NoReturn:
    try:
        become(errand.user)
        os.chdir(errand.working_directory)
        os.execvpe(errand.command[0], list(errand.command), errand.environment)  # noqa: S606
    except OSError as error:
        os.write(2, f"cannot run {errand.command[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(CANNOT_START)


if __name__ == "__main__":
    code = run(Errand.decode(sys.stdin.buffer.read()))
    sys.exit(code if code >= 0 else 128 - code)
