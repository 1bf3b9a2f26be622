"""A libvirt host that is reached over TLS and over ssh, both on loopback.

Authority, host key and sshd are its own; the system's are not touched. Debian's sshd is fetched
without being installed where the machine has none: installing it would open the machine.
"""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from shlex import quote

from certificates import Authority
from libvirt_daemon import LibvirtDaemon, own_daemon
from novacron.guests.tiny.debs import Debs, unpack
from novacron.localcluster.ports import free_port
from novacron.workplace.home import Home
from novacron.workplace.progress import Silent

__all__ = ["FarHost", "far_host"]

Secret = dict[str, bytes]


@dataclass(frozen=True)
class FarHost:
    """The daemon, and what its owner would put into Secrets."""

    daemon: LibvirtDaemon
    authority: Authority
    directory: Path
    tls_port: int
    ssh_port: int

    @property
    def by_tls(self) -> str:
        """How it is reached over TLS."""
        return f"qemu+tls://127.0.0.1:{self.tls_port}/system"

    @property
    def by_ssh(self) -> str:
        """How it is reached over ssh."""
        return f"qemu+ssh://root@127.0.0.1:{self.ssh_port}/system"

    def tls_secret(self) -> Secret:
        """What is needed to be let in over TLS."""
        pair = self.authority.pair("operator")
        return {
            "ca.crt": self.authority.certificate,
            "tls.crt": pair.certificate,
            "tls.key": pair.key,
        }

    def ssh_secret(self, *, key: str = "user", host_key: str = "host") -> Secret:
        """What is needed to be let in over ssh; other names are those of strangers."""
        kind, public, *_ = (self.directory / f"{host_key}.pub").read_text().split()
        return {
            "ssh-privatekey": (self.directory / key).read_bytes(),
            "known_hosts": f"[127.0.0.1]:{self.ssh_port} {kind} {public}\n".encode(),
        }


@contextmanager
def far_host(hidden: Iterable[Path] = ()) -> Iterator[FarHost]:
    """Start a host and both ways to it; directories that are hidden are empty there."""
    with tempfile.TemporaryDirectory(prefix="novacron-far-") as name:
        directory = Path(name)
        authority = Authority("far hosts")
        pair = authority.pair("far", "127.0.0.1")
        files = {"ca.pem": authority.certificate, "crt.pem": pair.certificate, "key.pem": pair.key}
        for file, content in files.items():
            (directory / file).write_bytes(content)
        for key in ("host", "user", "stranger"):
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(directory / key)]
            subprocess.run(command, check=True)
        port = free_port()
        settings = {
            "listen_addr": "127.0.0.1",
            "tls_port": str(port),
            "ca_file": str(directory / "ca.pem"),
            "cert_file": str(directory / "crt.pem"),
            "key_file": str(directory / "key.pem"),
        }
        empty = "; ".join(f"mount -n -t tmpfs none {quote(str(place))}" for place in hidden)
        with own_daemon(settings, before=empty) as daemon:
            host = FarHost(daemon, authority, directory, port, free_port([port]))
            sshd = _start_sshd(host)
            try:
                yield host
            finally:
                sshd.terminate()
                sshd.wait(30)


def _start_sshd(host: FarHost) -> "subprocess.Popen[bytes]":
    """Start an sshd that sees the files of the daemon's namespace, and a /run of its own."""
    here = host.directory
    (here / "config").write_text(
        f"ListenAddress 127.0.0.1\nPort {host.ssh_port}\nHostKey {here}/host\n"
        f"AuthorizedKeysFile {here}/user.pub\nPermitRootLogin prohibit-password\n"
        "PasswordAuthentication no\nKbdInteractiveAuthentication no\n"
        "UsePAM no\nStrictModes no\nPidFile none\nPrintMotd no\n"
    )
    users = Path("/etc/passwd").read_text()
    separate = "" if "\nsshd:" in users else "sshd:x:990:65534::/run/sshd:/usr/sbin/nologin\n"
    (here / "passwd").write_text(users + separate)
    program, libraries = _sshd()
    script = (
        f"mount --make-rprivate /; mount -n --bind {here}/passwd /etc/passwd; "
        f"mount -n -t tmpfs none /mnt; mkdir /mnt/sshd /mnt/libvirt; "
        f"mount -n --bind {host.daemon.directory}/run /mnt/libvirt; mount -n --move /mnt /run; "
        f"LD_LIBRARY_PATH={libraries} exec {program} -D -e -f {here}/config"
    )
    with (here / "sshd.log").open("wb") as log:
        command = host.daemon.inside("unshare", "--mount", "sh", "-ec", script)
        sshd = subprocess.Popen(command, stdout=log, stderr=log)
    deadline = time.monotonic() + 30
    while not _listens(host.ssh_port):
        assert sshd.poll() is None, (here / "sshd.log").read_text()
        assert time.monotonic() < deadline, "sshd does not listen"
        time.sleep(0.05)
    return sshd


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@cache
def _sshd() -> tuple[Path, Path]:
    """Return the program, and where libraries are that this machine may lack."""
    if installed := shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin"):
        return Path(installed), Path("/nonexistent")
    home = Home.default().cache / "tests-sshd"
    system = home / "system"
    program, libraries = system / "usr/sbin/sshd", home / "libraries"
    if not libraries.exists():
        with tempfile.TemporaryDirectory() as scratch:
            packages = Debs(home / "debs", Path(scratch), Silent()).closure(["openssh-server"])
        unpack(packages, system)
        libraries.mkdir()
        # Only this one: another C library than the machine's own would break its shells.
        for library in system.rglob("libwrap.so*"):
            shutil.copy(library, libraries)
    return program, libraries
