"""How a host is reached: the URI as libvirt wants it, and the credentials as files it can read.

Host keys and certificates are always checked; nothing here can be told not to.
"""

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from novacron.core.errors import Rejected

__all__ = ["Reach"]

TLS_FILES = {"ca.crt": "cacert.pem", "tls.crt": "clientcert.pem", "tls.key": "clientkey.pem"}
SSH_KEY, SSH_HOSTS = "ssh-privatekey", "known_hosts"
UNCHECKED = ("no_verify", "known_hosts_verify")
SSH = "ssh -o BatchMode=yes -o StrictHostKeyChecking=yes -o ConnectTimeout=10"


class Reach:
    """Keeps the files of one host's credentials, in a directory that nobody else can read."""

    def __init__(self, host: str, uri: str) -> None:
        self._host = host
        self._parts = urlsplit(uri)
        self._directory: Path | None = None

    def uri(self, credentials: Mapping[str, bytes]) -> str:
        """Return the URI to open; what an earlier one needed is gone."""
        self.forget()
        query = dict(parse_qsl(self._parts.query))
        if any(name in query for name in UNCHECKED):
            raise Rejected(f"host {self._host}: the other side is always checked; drop no_verify")
        if self._parts.scheme.endswith("+tls") and credentials:
            query["pkipath"] = str(self._tls(credentials))
        elif self._parts.scheme.endswith("+ssh"):
            query["command"] = str(self._ssh(credentials))
        encoded = urlencode(query, safe="/:")
        return urlunsplit(self._parts._replace(query=encoded))

    def forget(self) -> None:
        """Remove the files."""
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None

    def _tls(self, credentials: Mapping[str, bytes]) -> Path:
        for key, name in TLS_FILES.items():
            self._file(name, self._needed(credentials, key))
        return self._private()

    def _ssh(self, credentials: Mapping[str, bytes]) -> Path:
        command = SSH
        if credentials:
            known = self._file(SSH_HOSTS, self._needed(credentials, SSH_HOSTS))
            key = self._file("key", self._needed(credentials, SSH_KEY))
            command += (
                f" -F none -o IdentitiesOnly=yes -o GlobalKnownHostsFile=/dev/null"
                f" -o UserKnownHostsFile={quote(str(known))} -i {quote(str(key))}"
            )
        script = self._file("ssh", f'#!/bin/sh\nexec {command} "$@"\n'.encode())
        script.chmod(0o700)
        return script

    def _needed(self, credentials: Mapping[str, bytes], key: str) -> bytes:
        try:
            return credentials[key]
        except KeyError:
            raise Rejected(
                f"host {self._host}: its credentials have no {key}", reason="CredentialsIncomplete"
            ) from None

    def _private(self) -> Path:
        if self._directory is None:
            self._directory = Path(tempfile.mkdtemp(prefix="novacron-libvirt-"))
        return self._directory

    def _file(self, name: str, content: bytes) -> Path:
        path = self._private() / name
        path.touch(mode=0o600)
        path.write_bytes(content)
        return path
