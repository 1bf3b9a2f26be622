"""A libvirt daemon of the tests' own, in namespaces of its own."""

import os
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import libvirt

from novacron.localcluster.hypervisor.account import own_accounts

# Volumes that are no machine's own: images, and what tells pools apart.
OF_ALL = ("image-", "novacron-pool-")
MOUNTS = {
    "run": "/run/libvirt",
    "lib": "/var/lib/libvirt",
    "etc": "/etc/libvirt",
    "log": "/var/log/libvirt",
    "cache": "/var/cache/libvirt",
}
QEMU_CONF = """security_driver = "none"
user = "root"
group = "root"
remember_owner = 0
stdio_handler = "file"
namespaces = []
cgroup_controllers = []
"""


@dataclass
class LibvirtDaemon:
    """One host.

    ``before`` is shell that its mount namespace is prepared with. ``settings`` are more lines of
    its configuration; one that listens on TLS does so on this machine's own loopback, so it has
    no network namespace.
    """

    directory: Path
    namespace: str = field(default_factory=lambda: f"nova-{uuid.uuid4().hex[:8]}")
    before: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    process: "subprocess.Popen[bytes] | None" = None
    host_uuid: str = field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def listens(self) -> bool:
        """Whether it can be reached by more than its own socket."""
        return bool(self.settings)

    @property
    def pid(self) -> int:
        """Its process."""
        assert self.process is not None
        return self.process.pid

    @property
    def uri(self) -> str:
        return f"qemu:///system?socket={self.directory}/run/libvirt-sock"

    def start(self) -> "LibvirtDaemon":
        """Start it, or start it again, and wait until it answers."""
        if not self.listens and not Path(f"/run/netns/{self.namespace}").exists():
            subprocess.run(["ip", "netns", "add", self.namespace], check=True)
            command = ["ip", "netns", "exec", self.namespace, "ip", "link", "set", "lo", "up"]
            subprocess.run(command, check=True)
        for name, place in MOUNTS.items():
            (self.directory / name).mkdir(parents=True, exist_ok=True)
            Path(place).mkdir(parents=True, exist_ok=True)
        settings = {
            "auth_unix_rw": "none",
            "unix_sock_group": "root",
            "host_uuid": self.host_uuid,
            "log_outputs": f"2:file:{self.directory}/log/libvirtd.log",
            **self.settings,
        }
        lines = "".join(f'{name} = "{value}"\n' for name, value in settings.items())
        (self.directory / "etc/libvirtd.conf").write_text(lines)
        (self.directory / "etc/qemu.conf").write_text(QEMU_CONF)
        seen = {self.directory / name: place for name, place in MOUNTS.items()}
        # Debian's libvirt does not start without a user that its packages need not bring.
        shown = {**seen, **own_accounts(self.directory)}
        binds = "; ".join(f"mount --bind {own} {place}" for own, place in shown.items())
        listen = "--listen" if self.listens else ""
        files = f"-f {self.directory}/etc/libvirtd.conf -p {self.directory}/pid"
        daemon = f"exec libvirtd {listen} {files}"
        script = f"mount --make-rprivate / && {binds}; {self.before or ':'}; {daemon}"
        with (self.directory / "out.log").open("ab") as log:
            apart = [] if self.listens else ["ip", "netns", "exec", self.namespace]
            self.process = subprocess.Popen(
                [*apart, "unshare", "-m", "sh", "-ec", script],
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self._await()
        return self

    def _await(self) -> None:
        for _ in range(300):
            assert self.process is not None
            assert self.process.poll() is None, self._said()
            try:
                libvirt.open(self.uri).close()
                return
            except libvirt.libvirtError:
                time.sleep(0.1)
        raise AssertionError("libvirtd does not answer")

    def _said(self) -> str:
        logs = (self.directory / "out.log", self.directory / "log/libvirtd.log")
        return "".join(log.read_text() for log in logs if log.exists())

    def inside(self, *command: str) -> list[str]:
        """Return a command that sees the files which the daemon sees."""
        return ["nsenter", f"--mount=/proc/{self.pid}/ns/mnt", "--", *command]

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Let it hang for a while: its sockets are open, and nobody answers."""
        os.kill(self.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """End it as a crash would; guests go on."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(30)

    def in_its_mounts(self, *command: str) -> None:
        """Run something where the daemon's files are."""
        subprocess.run(self.inside(*command), check=True)

    def stop(self) -> None:
        """End the daemon and every guest, and take the namespace away."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(30)
        for file in (self.directory / "run/qemu").glob("*.pid"):
            with suppress(OSError, ValueError):
                os.kill(int(file.read_text()), signal.SIGKILL)
        if self.listens:
            return
        pids = subprocess.run(
            ["ip", "netns", "pids", self.namespace], capture_output=True, text=True, check=False
        ).stdout.split()
        if pids:
            subprocess.run(["kill", "-9", *pids], check=False)
        time.sleep(0.2)
        subprocess.run(["ip", "netns", "del", self.namespace], check=False)


@contextmanager
def own_daemon(
    settings: Mapping[str, str] | None = None, *, before: str = ""
) -> Iterator[LibvirtDaemon]:
    """Start a daemon for tests that break it, or that need it to be otherwise."""
    with tempfile.TemporaryDirectory(prefix="novacron-libvirt-") as directory:
        daemon = LibvirtDaemon(Path(directory), before=before, settings=settings or {})
        try:
            yield daemon.start()
        finally:
            daemon.stop()


def add_pool(connection: libvirt.virConnect, name: str, directory: Path) -> libvirt.virStoragePool:
    """Make a storage pool, as a host's owner would."""
    directory.mkdir(exist_ok=True)
    pool = connection.storagePoolDefineXML(
        f"<pool type='dir'><name>{name}</name><target><path>{directory}</path></target></pool>"
    )
    pool.create()
    return pool


_shared = ExitStack()


@cache
def shared_daemon() -> LibvirtDaemon:
    """One daemon for the whole run: its start is longer than most tests."""
    return _shared.enter_context(own_daemon())


def stop_shared_daemon() -> None:
    """End it, if it was ever needed."""
    _shared.close()
    shared_daemon.cache_clear()
