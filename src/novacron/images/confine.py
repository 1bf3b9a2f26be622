"""Runs one program with limits and without a network; a program of its own, not to be imported.

Started with the bare interpreter: ``python -I -S confine.py ADDRESSES MEMORY CPU_SECONDS FILE_BYTES
PROGRAM ARGUMENT…``. It sets the limits, gives up rights that it has, has the kernel refuse sockets,
and becomes the program, which is named by its whole path. It may not know anything of ours.
"""

import ctypes
import os
import resource
import struct
import sys
from contextlib import suppress
from pathlib import Path

PR_SET_NO_NEW_PRIVS = 38
PR_SET_SECCOMP = 22
SECCOMP_MODE_FILTER = 2
NOBODY = 65534
FILES = 64
# A thread counts with all the stack that it may have. Most programs give it eight times as much as
# any takes, so that it depends on how many run at once whether the memory is enough.
STACK_BYTES = 1024 * 1024
# Above its limit it is told by a signal of its own, and has so long to end by itself.
MORE_SECONDS = 5
# By architecture: how the kernel calls it, and the numbers of socket, connect and ptrace.
ARCHITECTURES = {
    "x86_64": (0xC000003E, (41, 42, 101)),
    "aarch64": (0xC00000B7, (198, 203, 117)),
}
LOAD, EQUALS, RETURN = 0x20, 0x15, 0x06
NUMBER_AT, ARCHITECTURE_AT = 0, 4
ALLOW, REFUSE, KILL = 0x7FFF0000, 0x00050001, 0x80000000


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def _refuse_sockets() -> None:
    architecture, numbers = ARCHITECTURES[os.uname().machine]
    rules = [
        (LOAD, 0, 0, ARCHITECTURE_AT),
        (EQUALS, 1, 0, architecture),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER_AT),
    ]
    for left, number in zip(range(len(numbers), 0, -1), numbers, strict=True):
        rules.append((EQUALS, left, 0, number))
    rules += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, REFUSE)]
    code = b"".join(struct.pack("=HBBI", *rule) for rule in rules)
    program = _Program(len(rules), code)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
        PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program)
    ):
        raise OSError(ctypes.get_errno(), "the kernel takes no filter of system calls")


def _be_the_first_to_go() -> None:
    """Have the kernel end this, and not who started it, where there is no memory for both."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def main(addresses: str, memory: str, seconds: str, size: str, *command: str) -> None:
    """Set the limits and become the program."""
    _be_the_first_to_go()
    for what, limit in (
        (resource.RLIMIT_AS, int(addresses)),
        (resource.RLIMIT_DATA, int(memory)),
        (resource.RLIMIT_STACK, STACK_BYTES),
        (resource.RLIMIT_FSIZE, int(size)),
        (resource.RLIMIT_NOFILE, FILES),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(what, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + MORE_SECONDS))
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    _refuse_sockets()
    os.execv(command[0], command)  # noqa: S606 - that is what it is for


if __name__ == "__main__":
    main(*sys.argv[1:])
