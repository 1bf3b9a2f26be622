"""What the webhooks serve with: a pair, the authorities to trust, and how long they last."""

import base64
import binascii
import ssl
import tempfile
from dataclasses import dataclass, field
from datetime import timedelta

from novacron.runtime.resource import Object

__all__ = ["Certificates", "Lifetimes"]

# In the order of the fields of Certificates.
SECRET_KEYS = ("tls.crt", "tls.key", "ca.crt", "ca.key")


@dataclass(frozen=True, slots=True)
class Certificates:
    """A server's pair and the authorities to trust, all PEM; the newest authority comes first."""

    certificate: bytes
    key: bytes = field(repr=False)
    authorities: bytes
    authority_key: bytes = field(repr=False)

    @property
    def changes_authority(self) -> bool:
        """Whether one authority takes over from another: then it matters whom others trust."""
        return self.authorities.count(b"BEGIN CERTIFICATE") > 1

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
    def from_data(cls, data: Object) -> "Certificates":
        """Return what the data of a Secret say, whether or not it can be served."""
        return cls(*(base64.b64decode(data[name]) for name in SECRET_KEYS))

    @classmethod
    def from_secret(cls, secret: Object) -> "Certificates | None":
        """Return what a Secret holds, or None when that cannot be served."""
        try:
            certificates = cls.from_data(secret.get("data") or {})
            certificates.install(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
        except (KeyError, binascii.Error, ssl.SSLError):
            return None
        return certificates


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """How long certificates are valid; each is renewed when a third of that is left."""

    authority: timedelta = timedelta(days=3650)
    server: timedelta = timedelta(days=90)
