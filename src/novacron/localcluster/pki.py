"""Certificates of the local cluster: own authorities, and what they sign.

Pairs are made when they are missing, damaged, about to expire or for another subject, so
asking twice costs nothing and asking after a year repairs. Who uses them is not known here.
"""

import datetime as dt
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from novacron.workplace.files import write_private

__all__ = ["Authority", "KeyPair", "signing_key"]

AUTHORITY_LIFETIME = dt.timedelta(days=3650)
LIFETIME = dt.timedelta(days=365)
RENEW_BEFORE = dt.timedelta(days=30)
# Clocks of virtual machines jump; a certificate from the future is refused by everyone.
BACKDATE = dt.timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """Where a certificate and its key lie."""

    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class _Wanted:
    subject: x509.Name
    names: tuple[x509.GeneralName, ...] = ()
    usages: tuple[x509.ObjectIdentifier, ...] = ()


@dataclass(frozen=True)
class Authority:
    """A certificate authority that lives in a directory of its own."""

    directory: Path
    name: str
    now: dt.datetime = field(default_factory=lambda: dt.datetime.now(dt.UTC))

    @property
    def pair(self) -> KeyPair:
        """Return the authority's own certificate and key, made at the first call."""
        pair = self._paths("ca")
        if self._usable(pair, _Wanted(_name(self.name)), issuer=None):
            return pair
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            self._builder(_name(self.name), _name(self.name), key, AUTHORITY_LIFETIME)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_key_usage(authority=True), critical=True)
        )
        return _store(pair, key, builder.sign(key, hashes.SHA256()))

    def server(self, name: str, hosts: Sequence[str], *, client: bool = False) -> KeyPair:
        """Return a pair for a server reached by these hosts, which may also act as a client."""
        usages = [ExtendedKeyUsageOID.SERVER_AUTH]
        if client:
            usages.append(ExtendedKeyUsageOID.CLIENT_AUTH)
        names = tuple(_general_name(host) for host in hosts)
        return self._issue(name, _Wanted(_name(name), names, tuple(usages)))

    def client(self, name: str, user: str, groups: Sequence[str] = ()) -> KeyPair:
        """Return a pair that Kubernetes reads as this user in these groups."""
        subject = _name(user, groups)
        return self._issue(name, _Wanted(subject, usages=(ExtendedKeyUsageOID.CLIENT_AUTH,)))

    def _issue(self, name: str, wanted: _Wanted) -> KeyPair:
        authority = self.pair
        issuer = _certificate(authority.certificate)
        pair = self._paths(name)
        if self._usable(pair, wanted, issuer=issuer):
            return pair
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            self._builder(wanted.subject, issuer.subject, key, LIFETIME)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(authority=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(wanted.usages), critical=False)
        )
        if wanted.names:
            builder = builder.add_extension(
                x509.SubjectAlternativeName(wanted.names), critical=False
            )
        return _store(pair, key, builder.sign(_private_key(authority.key), hashes.SHA256()))

    def _paths(self, name: str) -> KeyPair:
        return KeyPair(self.directory / f"{name}.crt", self.directory / f"{name}.key")

    def _builder(
        self,
        subject: x509.Name,
        issuer: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        lifetime: dt.timedelta,
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(self.now - BACKDATE)
            .not_valid_after(self.now + lifetime)
        )

    def _usable(self, pair: KeyPair, wanted: _Wanted, issuer: x509.Certificate | None) -> bool:
        try:
            certificate = _certificate(pair.certificate)
            if _private_key(pair.key).public_key() != certificate.public_key():
                return False
            certificate.verify_directly_issued_by(issuer or certificate)
        except (OSError, ValueError, TypeError, InvalidSignature):
            return False
        return (
            certificate.not_valid_before_utc <= self.now
            and self.now + RENEW_BEFORE < certificate.not_valid_after_utc
            and certificate.subject == wanted.subject
            and _names(certificate) == wanted.names
        )


def signing_key(path: Path) -> KeyPair:
    """Return the key that signs service account tokens, beside its public half."""
    pair = KeyPair(path.with_suffix(".pub"), path.with_suffix(".key"))
    try:
        key = _private_key(pair.key)
    except (OSError, ValueError, TypeError):
        key = ec.generate_private_key(ec.SECP256R1())
        write_private(pair.key, _pem(key))
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    if not pair.certificate.exists() or pair.certificate.read_bytes() != public:
        write_private(pair.certificate, public)
    return pair


def _name(user: str, groups: Sequence[str] = ()) -> x509.Name:
    organisations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organisations, x509.NameAttribute(NameOID.COMMON_NAME, user)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _names(certificate: x509.Certificate) -> tuple[x509.GeneralName, ...]:
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return ()
    return tuple(extension.value)


def _key_usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        # QEMU 7 and libvirt 9 want it of every key, also where no cipher makes use of it.
        key_encipherment=not authority,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )


def _certificate(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def _private_key(path: Path) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError(f"{path} is not an elliptic curve key")
    return key


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    # client-go and etcd read SEC 1 as well as PKCS 8; token signing reads SEC 1 only.
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def _store(
    pair: KeyPair, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate
) -> KeyPair:
    # A crash between the two leaves a pair that does not match, which the next call replaces.
    write_private(pair.key, _pem(key))
    write_private(pair.certificate, certificate.public_bytes(serialization.Encoding.PEM))
    return pair
