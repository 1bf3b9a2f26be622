"""Open vSwitch of the tests' own: its userspace datapath, in a namespace, without a service.

The programs are Debian's, unpacked into the cache rather than installed: installing them would
start a switch on the machine itself.
"""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from novacron.guests.tiny.debs import Debs, unpack
from novacron.workplace.home import Home
from novacron.workplace.lock import holding
from novacron.workplace.progress import Silent

__all__ = ["OpenVswitch", "open_vswitch"]

# The machine's own C library goes with the machine's own loader.
NOT_THESE = ("libc6_", "libgcc-s1_")


def unpacked() -> Path:
    """Return where the programs are, fetched once for the machine."""
    place = Home.default().cache / "open-vswitch"
    done = place / "complete"
    place.mkdir(parents=True, exist_ok=True)
    with holding(place / "lock", "tests", on_wait=lambda: None):
        if not done.exists():
            debs = Debs(place / "debs", place / "scratch", Silent())
            packages = debs.closure(["openvswitch-switch", "openvswitch-common"])
            wanted = [each for each in packages if not each.name.startswith(NOT_THESE)]
            unpack(wanted, place / "root")
            done.touch()
    return place / "root"


@dataclass
class OpenVswitch:
    """A database and a switch in one namespace."""

    namespace: str
    directory: Path

    @cached_property
    def root(self) -> Path:
        """Where the programs are."""
        return unpacked()

    @property
    def environment(self) -> dict[str, str]:
        """What the programs need to find their libraries and each other."""
        libraries = f"{self.root}/usr/lib/x86_64-linux-gnu:{self.root}/lib/x86_64-linux-gnu"
        return {
            **os.environ,
            "LD_LIBRARY_PATH": libraries,
            "OVS_RUNDIR": str(self.directory),
            "OVS_LOGDIR": str(self.directory),
            "OVS_PKGDATADIR": f"{self.root}/usr/share/openvswitch",
        }

    def client(self, directory: Path) -> Path:
        """Make an ovs-vsctl that talks to this database, for whoever looks for it by PATH."""
        path = directory / "ovs-vsctl"
        exported = "".join(
            f"export {name}='{self.environment[name]}'\n"
            for name in ("LD_LIBRARY_PATH", "OVS_RUNDIR")
        )
        path.write_text(f'#!/bin/sh\n{exported}exec {self.root}/usr/bin/ovs-vsctl "$@"\n')
        path.chmod(0o755)
        return path

    def show_client(self, daemon: int, directory: Path) -> None:
        """Have a daemon with a view of its own, and nobody else, find that command."""
        directory.mkdir()
        self.client(directory)
        within = ["nsenter", f"--mount=/proc/{daemon}/ns/mnt", "--"]
        subprocess.run([*within, "mount", "--bind", str(directory), "/usr/local/sbin"], check=True)

    def vsctl(self, *command: str) -> str:
        """Ask the database something, or tell it."""
        return self._run(f"{self.root}/usr/bin/ovs-vsctl", "--timeout=10", *command)

    def add_bridge(self, name: str, address: str | None = None) -> None:
        """Make a bridge; with an address, one that this namespace is reached by."""
        self.vsctl("add-br", name, "--", "set", "bridge", name, "datapath_type=netdev")
        if address:
            self._inside("ip", "addr", "add", address, "dev", name)
        self._inside("ip", "link", "set", name, "up")

    def start(self) -> None:
        """Start both daemons."""
        self.directory.mkdir(parents=True, exist_ok=True)
        database = self.directory / "conf.db"
        schema = f"{self.root}/usr/share/openvswitch/vswitch.ovsschema"
        self._run(f"{self.root}/usr/bin/ovsdb-tool", "create", str(database), schema)
        self._daemon(
            f"{self.root}/usr/sbin/ovsdb-server",
            str(database),
            f"--remote=punix:{self.directory}/db.sock",
        )
        self.vsctl("--no-wait", "init")
        self._daemon(
            f"{self.root}/usr/lib/openvswitch-switch/ovs-vswitchd",
            f"unix:{self.directory}/db.sock",
        )

    def stop(self) -> None:
        """End both daemons."""
        for file in self.directory.glob("*.pid"):
            pid = int(file.read_text())
            os.kill(pid, 9)
            while Path(f"/proc/{pid}").exists():
                time.sleep(0.02)

    def _daemon(self, program: str, *arguments: str) -> None:
        name = Path(program).name
        options = (f"--pidfile={self.directory}/{name}.pid", "--detach", "--no-chdir")
        log = f"--log-file={self.directory}/{name}.log"
        self._inside(program, *arguments, *options, log, "-vconsole:off")

    def _inside(self, *command: str) -> str:
        return self._run("ip", "netns", "exec", self.namespace, *command)

    def _run(self, *command: str) -> str:
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout


@contextmanager
def open_vswitch(namespace: str, directory: Path) -> Iterator[OpenVswitch]:
    """Have a switch in a namespace for a while."""
    switch = OpenVswitch(namespace, directory)
    try:
        switch.start()
        yield switch
    finally:
        switch.stop()
