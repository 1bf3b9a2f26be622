"""A program on a terminal of its own, as a person has it: keys, and a screen."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence

__all__ = ["PseudoTerminal"]

PATIENCE_SECONDS = 60.0


class PseudoTerminal:
    """One terminal with one program on it."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._ours, self._theirs = pty.openpty()
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.before = termios.tcgetattr(self._theirs)
        self.screen = b""
        self.process = subprocess.Popen(
            command,
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
            env=dict(environment),
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - no locks in it
        )

    def type(self, keys: bytes) -> None:
        """Type something."""
        os.write(self._ours, keys)

    def until(self, pattern: str, seconds: float = PATIENCE_SECONDS) -> re.Match[bytes]:
        """Wait until the screen shows something, and forget all up to its end."""
        deadline = time.monotonic() + seconds
        while not (found := re.search(pattern.encode(), self.screen)):
            left = deadline - time.monotonic()
            assert left > 0, f"never shown: {pattern!r}, but {self.screen!r}"
            self._look(left)
        self.screen = self.screen[found.end() :]
        return found

    def raw(self) -> bool:
        """Say whether keys go to the program as they are."""
        return not termios.tcgetattr(self._theirs)[3] & (termios.ICANON | termios.ECHO)

    def signal(self, number: signal.Signals) -> None:
        """Send the program a signal."""
        self.process.send_signal(number)

    def ended(self, seconds: float = PATIENCE_SECONDS) -> int:
        """Wait until the program ends; its terminal must then be as it was. Return the code."""
        deadline = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < deadline, f"it goes on; screen: {self.screen!r}"
            self._look(0.05)
        self._look(0)
        assert termios.tcgetattr(self._theirs) == self.before
        return self.process.returncode

    def close(self) -> None:
        """Take the terminal away."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._ours)
        os.close(self._theirs)

    def _look(self, seconds: float) -> None:
        while select.select([self._ours], [], [], seconds)[0]:
            self.screen += os.read(self._ours, 65536)
            seconds = 0
