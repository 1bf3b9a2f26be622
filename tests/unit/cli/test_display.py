"""A person sees a moving line and ticks; a log sees plain lines."""

import os
import pty
import subprocess
import sys

SCRIPT = """
from novacron.cli.display import display
with display().step("Build") as progress:
    progress.say("compiling")
    for done in range(1, 21):
        progress.count("packages", done, 20)
try:
    with display().step("Start"):
        raise RuntimeError
except RuntimeError:
    pass
"""


def _on_a_terminal(**environment: str) -> str:
    """Run the script with a terminal for its output and return what the terminal saw."""
    master, slave = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        stdin=slave, stdout=slave, stderr=slave,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", **environment},
    )  # fmt: skip
    os.close(slave)
    seen = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:
            # Linux says so when the last one closed the other end.
            break
        if not part:
            break
        seen += part
    os.close(master)
    assert child.wait() == 0, seen.decode()
    return seen.decode()


def test_a_terminal_sees_a_bar_and_ticks():
    """Minutes of building need something that moves."""
    seen = _on_a_terminal(NO_COLOR="")
    assert "20 of 20 packages" in seen
    assert "\x1b[32m✓" in seen
    assert "Build" in seen
    assert "✗" in seen


def test_without_colours_the_words_stay():
    """NO_COLOR is a wish that every program should know."""
    seen = _on_a_terminal(NO_COLOR="1")
    assert "\x1b[32m" not in seen
    assert "✓ Build" in seen


def test_a_log_sees_plain_lines_and_not_too_many():
    """Two thousand packages must not be two thousand lines."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    assert lines[:2] == ["Build …", "  compiling"]
    assert "  20 of 20 packages" in lines
    assert len(lines) <= 15
    assert "\x1b" not in done.stdout
