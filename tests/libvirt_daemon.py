"""A libvirt daemon of the tests' own, in namespaces of its own."""

import atexit
import subprocess
import tempfile
import time
import uuid
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import libvirt

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
    """One host; ``before`` is shell that its mount namespace is prepared with."""

    directory: Path
    namespace: str = field(default_factory=lambda: f"nova-{uuid.uuid4().hex[:8]}")
    before: str = ""
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def uri(self) -> str:
        return f"qemu:///system?socket={self.directory}/run/libvirt-sock"

    def start(self) -> "LibvirtDaemon":
        if not Path(f"/run/netns/{self.namespace}").exists():
            subprocess.run(["ip", "netns", "add", self.namespace], check=True)
            command = ["ip", "netns", "exec", self.namespace, "ip", "link", "set", "lo", "up"]
            subprocess.run(command, check=True)
        for name, place in MOUNTS.items():
            (self.directory / name).mkdir(parents=True, exist_ok=True)
            Path(place).mkdir(parents=True, exist_ok=True)
        (self.directory / "etc/libvirtd.conf").write_text(
            f'auth_unix_rw = "none"\nunix_sock_group = "root"\nhost_uuid = "{uuid.uuid4()}"\n'
            f'log_outputs = "2:file:{self.directory}/log/libvirtd.log"\n'
        )
        (self.directory / "etc/qemu.conf").write_text(QEMU_CONF)
        binds = "; ".join(
            f"mount --bind {self.directory / name} {place}" for name, place in MOUNTS.items()
        )
        daemon = f"exec libvirtd -f {self.directory}/etc/libvirtd.conf -p {self.directory}/pid"
        script = f"mount --make-rprivate / && {binds}; {self.before or ':'}; {daemon}"
        with (self.directory / "out.log").open("ab") as log:
            self.process = subprocess.Popen(
                ["ip", "netns", "exec", self.namespace, "unshare", "-m", "sh", "-ec", script],
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self._await()
        return self

    def _await(self) -> None:
        for _ in range(300):
            assert self.process is not None
            assert self.process.poll() is None, (self.directory / "out.log").read_text()
            try:
                libvirt.open(self.uri).close()
                return
            except libvirt.libvirtError:
                time.sleep(0.1)
        raise AssertionError("libvirtd does not answer")

    def in_its_mounts(self, *command: str) -> None:
        """Run something where the daemon's files are."""
        assert self.process is not None
        subprocess.run(["nsenter", "-t", str(self.process.pid), "-m", *command], check=True)

    def stop(self) -> None:
        """End the daemon and every guest, and take the namespace away."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(30)
        pids = subprocess.run(
            ["ip", "netns", "pids", self.namespace], capture_output=True, text=True, check=False
        ).stdout.split()
        if pids:
            subprocess.run(["kill", "-9", *pids], check=False)
        time.sleep(0.2)
        subprocess.run(["ip", "netns", "del", self.namespace], check=False)


@cache
def shared_daemon() -> LibvirtDaemon:
    """One daemon for the whole run: its start is longer than most tests."""
    directory = tempfile.TemporaryDirectory(prefix="novacron-libvirt-")
    started = LibvirtDaemon(Path(directory.name)).start()
    atexit.register(directory.cleanup)
    atexit.register(started.stop)
    return started
