"""How a host is reached: the URI as libvirt wants it, and the credentials as files it can read.

Host keys and certificates are always checked; nothing here can be told not to. The files exist
only while a connection is being made, in a directory that nobody else can read.
"""

import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit
from urllib.parse import quote as percent

from novacron.core.errors import Rejected, Unreachable

__all__ = ["Reach"]

TLS_FILES = {"ca.crt": "cacert.pem", "tls.crt": "clientcert.pem", "tls.key": "clientkey.pem"}
SSH_FILES = {"ssh-privatekey": "key", "known_hosts": "known_hosts"}
UNCHECKED = ("no_verify", "known_hosts_verify")
# A network that swallows everything is noticed within a quarter of a minute.
SSH = (
    "ssh -o BatchMode=yes -o StrictHostKeyChecking=yes -o ConnectTimeout=10"
    " -o ServerAliveInterval=5 -o ServerAliveCountMax=3"
)
TLS_PORT = 16514
COMPLAINTS = "complaints"
LONGEST = 2000
WORDS = {
    r"Failed to verify peer's certificate": (
        "its certificate is not from the authority in ca.crt, or not for the name in its endpoint"
    ),
    r"Unable to read TLS confirmation": "it does not accept tls.crt",
    r"Our own certificate .* failed validation": "tls.crt is not from the authority in ca.crt",
    r"certificate and the given key do not match": "tls.key does not belong to tls.crt",
    r"Unable to set x509 key": "tls.key is no private key",
    r"Unable to import client certificate": "tls.crt is no certificate",
    r"Unable to import CA certificate": "ca.crt is no certificate",
    r"REMOTE HOST IDENTIFICATION HAS CHANGED": "its host key is another than known_hosts says",
    r"Host key verification failed": "its host key is not in known_hosts",
    r"Load key .*incorrect passphrase": "ssh-privatekey has a passphrase; give one without",
    r"Load key ": "ssh-privatekey is no private key",
    r"(\S+): Permission denied": r"it does not let \1 in with ssh-privatekey",
    r"ssh: not found": "there is no ssh on the machine that connects; install openssh-client",
    r"Cannot read (.*pki.*)": r"cannot read \1; name a Secret in credentialsSecret",
}


@dataclass(frozen=True, slots=True)
class Way:
    """What libvirt is told, and where ssh says why it went wrong.

    libvirt would pass that on too, but gives up where it is long, as it is when a key has changed.
    """

    uri: str
    complaints: Path | None

    def explained(self, said: str) -> str:
        """Return what went wrong on the way, in words that tell what to mend."""
        if self.complaints is not None:
            said = self.complaints.read_text(errors="replace")[-LONGEST:].strip() or said
        for pattern, words in WORDS.items():
            if found := re.search(pattern, said):
                return found.expand(words)
        return _nameless(said)


class Reach:
    """Knows how one host is reached."""

    def __init__(self, host: str, uri: str) -> None:
        self._host = host
        self._parts = urlsplit(uri)

    @property
    def tcp(self) -> tuple[str, int] | None:
        """The address that libvirt itself connects to by TCP, if it does."""
        if not self._parts.scheme.endswith("+tls"):
            return None
        return self._parts.hostname or "localhost", self._parts.port or TLS_PORT

    @contextmanager
    def way(self, credentials: Mapping[str, bytes]) -> Iterator[Way]:
        """Give the way to the host; the files it refers to are gone afterwards. Blocks."""
        query = dict(parse_qsl(self._parts.query))
        if any(name in query for name in UNCHECKED):
            raise Rejected(f"host {self._host}: the other side is always checked; drop no_verify")
        with ExitStack() as stack:
            more, complaints = self._more(stack, credentials)
            encoded = urlencode(query | more, safe="/:", quote_via=percent)
            yield Way(urlunsplit(self._parts._replace(query=encoded)), complaints)

    def _more(
        self, stack: ExitStack, credentials: Mapping[str, bytes]
    ) -> tuple[dict[str, str], Path | None]:
        """Return what the URI needs beside what its owner wrote."""
        transport = self._parts.scheme.partition("+")[2]
        if transport != "ssh" and not (transport == "tls" and credentials):
            return {}, None
        try:
            made = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="novacron-")))
            if transport == "ssh":
                return {"command": str(self._ssh(made, credentials))}, made / COMPLAINTS
            self._write(made, TLS_FILES, credentials)
        except OSError as error:
            raise Unreachable(
                f"host {self._host}: its credentials cannot be put into files: {error.strerror}"
            ) from error
        return {"pkipath": str(made)}, None

    def _ssh(self, directory: Path, credentials: Mapping[str, bytes]) -> Path:
        command = SSH
        if credentials:
            self._write(directory, SSH_FILES, credentials)
            command += (
                " -F none -o IdentitiesOnly=yes -o GlobalKnownHostsFile=/dev/null"
                f" -o UserKnownHostsFile={quote(str(directory / SSH_FILES['known_hosts']))}"
                f" -i {quote(str(directory / SSH_FILES['ssh-privatekey']))}"
            )
        complaints = directory / COMPLAINTS
        complaints.touch()
        script = directory / "ssh"
        script.write_text(f'#!/bin/sh\nexec {command} "$@" 2>{quote(str(complaints))}\n')
        script.chmod(0o700)
        return script

    def _write(
        self, directory: Path, files: Mapping[str, str], credentials: Mapping[str, bytes]
    ) -> None:
        missing = [key for key in files if key not in credentials]
        if missing:
            raise Rejected(
                f"host {self._host}: its Secret has no {' and no '.join(missing)}; "
                f"{self._parts.scheme} needs {', '.join(files)}",
                reason="CredentialsIncomplete",
            )
        for key, name in files.items():
            path = directory / name
            path.touch(mode=0o600)
            # ssh takes no key whose last line does not end, and Secrets easily lose that end.
            path.write_bytes(credentials[key].rstrip() + b"\n")


def _nameless(said: str) -> str:
    """Speak of the keys of the Secret, not of files that are gone."""
    for key, name in (TLS_FILES | SSH_FILES).items():
        said = re.sub(rf"\"?[^\s'\"]*/novacron-[^\s/]+/{re.escape(name)}\"?", key, said)
    return " ".join(said.split())
