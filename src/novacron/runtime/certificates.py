"""The webhooks' certificates: what they are, and the Secret in which replicas share them.

Whoever comes first makes the Secret; the leader renews it. How certificates are made is in
``issuing``, which is imported only when one is: the import costs a tenth of a second.
"""

import base64
import binascii
import ssl
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from novacron.runtime.client import Client
from novacron.runtime.errors import AlreadyExists, Conflict, NotFound
from novacron.runtime.resource import SECRETS, Key, Object

__all__ = ["CertificateSecret", "Certificates", "Lifetimes"]

# In the order of the fields of Certificates.
SECRET_KEYS = ("tls.crt", "tls.key", "ca.crt", "ca.key")


@dataclass(frozen=True, slots=True)
class Certificates:
    """A server's pair and the authorities to trust, all PEM; the newest authority comes first."""

    certificate: bytes
    key: bytes = field(repr=False)
    authorities: bytes
    authority_key: bytes = field(repr=False)

    def install(self, context: ssl.SSLContext) -> None:
        """Let a context present this pair in all handshakes from now on."""
        # The ssl module reads key pairs from files only; this one is ours alone and gone at once.
        with tempfile.NamedTemporaryFile(prefix="novacron-", suffix=".pem") as pair:
            pair.write(self.certificate + b"\n" + self.key)
            pair.flush()
            context.load_cert_chain(pair.name)

    def data(self) -> Object:
        """Return the data of the Secret that holds this."""
        parts = (self.certificate, self.key, self.authorities, self.authority_key)
        encoded = (base64.b64encode(part).decode() for part in parts)
        return dict(zip(SECRET_KEYS, encoded, strict=True))

    @classmethod
    def from_secret(cls, secret: Object) -> "Certificates | None":
        """Return what a Secret holds, or None when that cannot be served."""
        data = secret.get("data") or {}
        try:
            certificates = cls(*(base64.b64decode(data[name]) for name in SECRET_KEYS))
            certificates.install(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
        except (KeyError, binascii.Error, ssl.SSLError):
            return None
        return certificates


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """How long certificates are valid; each is renewed when a third of that is left."""

    authority: timedelta = timedelta(days=3650)
    server: timedelta = timedelta(days=90)


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(slots=True)
class CertificateSecret:
    """The Secret that all replicas read and the leader renews."""

    client: Client
    key: Key
    hosts: tuple[str, ...]
    lifetimes: Lifetimes = Lifetimes()
    clock: Callable[[], datetime] = _now
    current: Certificates | None = field(default=None, repr=False)

    async def load(self) -> Certificates:
        """Return the shared certificates; made when absent, restored when lost or damaged."""
        return await self._settle(lambda held: held or self._known())

    async def renew(self, trusted: bytes) -> Certificates:
        """Return the shared certificates, renewed where due. For the leader alone.

        A new authority signs only when it is among the trusted ones: those that the API server
        was told of in an earlier round.
        """
        from novacron.runtime.issuing import renewed  # noqa: PLC0415 - see the module's docstring

        def wanted(held: Certificates | None) -> Certificates:
            known = held or self._known()
            return renewed(known, self.hosts, self.clock(), self.lifetimes, trusted)

        return await self._settle(wanted)

    async def _settle(self, wanted: Callable[[Certificates | None], Certificates]) -> Certificates:
        """Bring the Secret to what is wanted of what it holds."""
        while True:
            secret = await self._read()
            held = Certificates.from_secret(secret) if secret else None
            self.current = wanted(held)
            if self.current == held:
                return self.current
            try:
                await self._write(secret, self.current)
            except (AlreadyExists, Conflict, NotFound):
                continue  # another replica was faster: take what it wrote
            return self.current

    def _known(self) -> Certificates:
        if self.current:
            return self.current
        from novacron.runtime.issuing import fresh  # noqa: PLC0415 - see the module's docstring

        return fresh(self.hosts, self.clock(), self.lifetimes)

    async def _read(self) -> Object | None:
        try:
            return await self.client.get(SECRETS, self.key.name, self.key.namespace)
        except NotFound:
            return None

    async def _write(self, secret: Object | None, certificates: Certificates) -> None:
        data = certificates.data()
        if secret:
            version = {"resourceVersion": secret["metadata"]["resourceVersion"]}
            patch = {"metadata": version, "data": data}
            await self.client.patch(SECRETS, self.key.name, patch, self.key.namespace)
            return
        metadata = {
            "name": self.key.name,
            "namespace": self.key.namespace,
            "labels": {"app.kubernetes.io/managed-by": "novacron"},
        }
        body = {"metadata": metadata, "type": "kubernetes.io/tls", "data": data}
        await self.client.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", **body})
