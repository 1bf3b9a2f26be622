"""What a daemon is told to be one of several that know and trust each other.

Guests can then be moved between them while they run. Nothing here starts anything.
"""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from novacron.localcluster.hypervisor.account import GUEST_USER
from novacron.localcluster.pki import Authority

__all__ = ["SEEN_CERTIFICATES", "Membership"]

# Where root's daemon sees them.
SEEN_CERTIFICATES = Path("/etc/libvirt/fleet")


@dataclass(frozen=True, slots=True)
class Membership:
    """One daemon's place among the others.

    ``address`` is where the others reach it, ``ports`` are those at which it takes guests in, and
    ``shared`` is a directory in which all of them keep disks. Everybody who shows a certificate of
    the authority is let in.
    """

    hostname: str
    address: str
    ports: range
    shared: Path
    network: str
    authority: Authority

    def write_certificates(self, directory: Path, *, privileged: bool) -> None:
        """Write them under the names that QEMU looks for, and those that libvirt does."""
        names = [self.address, self.hostname]
        pair = self.authority.server(self.hostname, names, client=True)
        directory.mkdir(exist_ok=True, mode=0o750)
        wanted = {
            "ca-cert.pem": self.authority.pair.certificate,
            "cacert.pem": self.authority.pair.certificate,
            "clientcert.pem": pair.certificate,
            "clientkey.pem": pair.key,
        }
        for role in ("server", "client"):
            wanted |= {f"{role}-cert.pem": pair.certificate, f"{role}-key.pem": pair.key}
        # So libvirt calls them when a daemon calls another one, to send it a guest.
        wanted |= {"cacert.pem": self.authority.pair.certificate}
        wanted |= {"clientcert.pem": pair.certificate, "clientkey.pem": pair.key}
        for name, source in wanted.items():
            target = directory / name
            if not target.exists() or target.read_bytes() != source.read_bytes():
                shutil.copyfile(source, target)
            target.chmod(0o640)
        if privileged:
            # QEMU opens them itself, and it runs as nobody in particular.
            for path in (directory, *directory.iterdir()):
                os.chown(path, 0, GUEST_USER)

    @property
    def peer_uri(self) -> str:
        """Return how the daemons of root's other hosts reach this one."""
        return f"qemu+tls://{self.address}/system?pkipath={SEEN_CERTIFICATES}"

    def daemon_settings(self, certificates: Path) -> str:
        """Return the lines that let others in by TLS."""
        return (
            f'listen_addr = "{self.address}"\n'
            f'ca_file = "{certificates}/ca-cert.pem"\n'
            f'cert_file = "{certificates}/server-cert.pem"\n'
            f'key_file = "{certificates}/server-key.pem"\n'
        )

    def guest_settings(self, certificates: Path) -> str:
        """Return the lines that say how guests come in."""
        return (
            f'migration_address = "{self.address}"\n'
            f'migration_host = "{self.address}"\n'
            f"migration_port_min = {self.ports.start}\n"
            f"migration_port_max = {self.ports.stop - 1}\n"
            f'migrate_tls_x509_cert_dir = "{certificates}"\n'
            "migrate_tls_x509_verify = 1\n"
        )
