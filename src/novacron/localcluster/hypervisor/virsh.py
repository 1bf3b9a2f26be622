"""libvirt's own command line, by which the daemon is asked to end what runs in it."""

import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from novacron.localcluster.errors import LocalClusterError
from novacron.workplace.programs import SEARCH, find_program

__all__ = ["VIRSH", "Virsh"]

VIRSH = "virsh"

CALL_SECONDS = 30
# A guest that is still booting hears nothing, so it is asked again.
AGAIN_SECONDS = 2.0
LOOK_SECONDS = 0.1
AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Virsh:
    """Speaks to one daemon."""

    uri: str

    def answers(self) -> bool:
        """Say whether the daemon is there and knows what its QEMU can do."""
        done = self._run("capabilities")
        return done is not None and done.returncode == 0

    def end_guests(self, grace: timedelta) -> None:
        """Ask all guests to shut down; pull the plug of those that did not in time."""
        end = time.monotonic() + grace.total_seconds()
        asked = 0.0
        while (guests := self._lines("list", "--uuid")) and time.monotonic() < end:
            if time.monotonic() - asked > AGAIN_SECONDS:
                self._each("shutdown", guests)
                asked = time.monotonic()
            time.sleep(LOOK_SECONDS)
        self._each("destroy", guests)

    def end_networks(self) -> None:
        """Take down all networks; they come back with the daemon if they are meant to."""
        self._each("net-destroy", self._lines("net-list", "--name"))

    def have_network(self, name: str, xml: str) -> None:
        """Have a network, started."""
        self._have("net", name, xml)

    def have_pool(self, name: str, path: Path) -> None:
        """Have a storage pool in a directory which is there."""
        target = f"<target><path>{path}</path></target>"
        self._have("pool", name, f"<pool type='dir'><name>{name}</name>{target}</pool>")

    def _have(self, kind: str, name: str, xml: str) -> None:
        if name in self._lines(f"{kind}-list", "--name"):
            return
        if name not in self._lines(f"{kind}-list", "--all", "--name"):
            self._must(f"{kind}-define", "/dev/stdin", xml=xml)
        self._must(f"{kind}-autostart", name)
        self._must(f"{kind}-start", name)

    def _must(self, *arguments: str, xml: str = "") -> None:
        done = self._run(*arguments, xml=xml)
        if done is None or done.returncode:
            said = done.stderr.strip() if done else "it does not answer"
            raise LocalClusterError(f"virsh {' '.join(arguments)} failed: {said}")

    def _each(self, command: str, names: list[str]) -> None:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda name: self._run(command, name), names))

    def _lines(self, *arguments: str) -> list[str]:
        done = self._run(*arguments)
        return done.stdout.split() if done else []

    def _run(self, *arguments: str, xml: str = "") -> "subprocess.CompletedProcess[str] | None":
        """Run one command; None stands for a daemon that hangs, or no virsh to ask it with."""
        virsh = find_program(VIRSH)
        if virsh is None:
            return None
        try:
            return subprocess.run(
                [virsh, "--quiet", "--connect", self.uri, *arguments],
                # Otherwise a user's daemon that is not there is started, another than is meant.
                env={**os.environ, "PATH": SEARCH, "LC_ALL": "C", "LIBVIRT_AUTOSTART": "0"},
                input=xml,
                capture_output=True,
                text=True,
                check=False,
                timeout=CALL_SECONDS,
            )
        except subprocess.TimeoutExpired:
            return None
