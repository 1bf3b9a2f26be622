"""Makes and renews the webhooks' certificates: an authority of our own and what it signs.

Pure functions of the certificates, the time and the lifetimes; where they are kept and who uses
them is not known here. An authority is replaced in three rounds, so that at no time a certificate
is served that the API server does not trust: first the new authority is only added to the trusted
ones, then it signs, and the old one goes when all it ever signed has expired.
"""

import ipaddress
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import orjson
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from novacron.runtime.certificate_pair import Certificates, Lifetimes

__all__ = ["fresh", "renewed"]

# Clocks of machines differ; a certificate from the future is refused by everyone.
BACKDATE = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class _Chain:
    """Certificates taken apart; the newest authority comes first and is the one with a key."""

    authorities: tuple[x509.Certificate, ...]
    authority_key: ec.EllipticCurvePrivateKey
    server: x509.Certificate
    server_key: ec.EllipticCurvePrivateKey

    @property
    def newest(self) -> x509.Certificate:
        return self.authorities[0]

    def signed_by_newest(self) -> bool:
        return _signed(self.server, self.newest)


def fresh(hosts: Sequence[str], now: datetime, lifetimes: Lifetimes) -> Certificates:
    """Return a new authority and a new server certificate for these names and addresses."""
    authority, authority_key = _authority(now, lifetimes)
    server, server_key = _server(authority, authority_key, hosts, now, lifetimes)
    return _joined(_Chain((authority,), authority_key, server, server_key))


def renewed(
    held: Certificates, hosts: Sequence[str], now: datetime, lifetimes: Lifetimes, trusted: bytes
) -> Certificates:
    """Return the certificates with whatever is due replaced, or the very same ones.

    ``trusted`` are the authorities the API server knows. What is damaged is made anew at once.
    """
    try:
        chain = before = _parted(held)
    except (ValueError, TypeError, IndexError):
        return fresh(hosts, now, lifetimes)
    if _ends_soon(chain.newest, now, lifetimes.authority):
        authority, authority_key = _authority(now, lifetimes)
        authorities = (authority, *chain.authorities)
        chain = replace(chain, authorities=authorities, authority_key=authority_key)
    if _server_is_due(chain, hosts, now, lifetimes, trusted):
        server, key = _server(chain.newest, chain.authority_key, hosts, now, lifetimes)
        chain = replace(chain, server=server, server_key=key)
    chain = _without_retired(chain, now, lifetimes)
    return held if chain is before else _joined(chain)


def _server_is_due(
    chain: _Chain, hosts: Sequence[str], now: datetime, lifetimes: Lifetimes, trusted: bytes
) -> bool:
    usable = (
        chain.server.not_valid_before_utc <= now < chain.server.not_valid_after_utc
        and set(_names(hosts)) <= set(_alternative_names(chain.server))
        and any(_signed(chain.server, authority) for authority in chain.authorities)
    )
    if not usable:
        return True
    if chain.signed_by_newest():
        return _ends_soon(chain.server, now, lifetimes.server)
    return _pem(chain.newest) in trusted


def _without_retired(chain: _Chain, now: datetime, lifetimes: Lifetimes) -> _Chain:
    # An authority's key is dropped when its successor is made: what it signed is older than that.
    signed_before = chain.newest.not_valid_before_utc + BACKDATE
    if not chain.signed_by_newest() or now < signed_before + lifetimes.server:
        kept = tuple(each for each in chain.authorities if now < each.not_valid_after_utc)
    else:
        kept = chain.authorities[:1]
    return chain if kept == chain.authorities else replace(chain, authorities=kept)


def _ends_soon(certificate: x509.Certificate, now: datetime, lifetime: timedelta) -> bool:
    early = certificate.not_valid_before_utc > now
    return early or now >= certificate.not_valid_after_utc - lifetime / 3


def _authority(
    now: datetime, lifetimes: Lifetimes
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _subject("novacron webhooks authority")
    builder = (
        _builder(name, name, key, now, now + lifetimes.authority)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(authority=True), critical=True)
    )
    return builder.sign(key, hashes.SHA256()), key


def _server(
    authority: x509.Certificate,
    authority_key: ec.EllipticCurvePrivateKey,
    hosts: Sequence[str],
    now: datetime,
    lifetimes: Lifetimes,
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    key = ec.generate_private_key(ec.SECP256R1())
    # A chain is as good as its first expired part.
    until = min(now + lifetimes.server, authority.not_valid_after_utc)
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    builder = (
        _builder(_subject("novacron webhooks"), authority.subject, key, now, until)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(authority=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(_names(hosts)), critical=False)
        .add_extension(issuer, critical=False)
    )
    return builder.sign(authority_key, hashes.SHA256()), key


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: datetime,
    until: datetime,
) -> x509.CertificateBuilder:
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATE)
        .not_valid_after(until)
        .add_extension(identifier, critical=False)
    )


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )


def _names(hosts: Sequence[str]) -> list[x509.GeneralName]:
    return [_general_name(host) for host in hosts]


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _alternative_names(certificate: x509.Certificate) -> list[x509.GeneralName]:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return []
    return list(found.value)


def _signed(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def _parted(held: Certificates) -> _Chain:
    authorities = tuple(x509.load_pem_x509_certificates(held.authorities))
    authority_key = _private_key(held.authority_key)
    if authority_key.public_key() != authorities[0].public_key():
        raise ValueError("the authority's key is another one's")
    server = x509.load_pem_x509_certificate(held.certificate)
    return _Chain(authorities, authority_key, server, _private_key(held.key))


def _joined(chain: _Chain) -> Certificates:
    return Certificates(
        certificate=_pem(chain.server),
        key=_key_pem(chain.server_key),
        authorities=b"".join(_pem(authority) for authority in chain.authorities),
        authority_key=_key_pem(chain.authority_key),
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _private_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(pem, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError("the key is not one of ours")
    return key


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def main() -> None:
    """Answer one order from standard input on standard output; see ``issuing_apart``."""
    order = orjson.loads(sys.stdin.buffer.read())
    now = datetime.fromisoformat(order["now"])
    lifetimes = Lifetimes(*(timedelta(seconds=seconds) for seconds in order["lifetimes"]))
    if order["held"] is None:
        made = fresh(order["hosts"], now, lifetimes)
    else:
        held = Certificates.from_data(order["held"])
        made = renewed(held, order["hosts"], now, lifetimes, order["trusted"].encode())
    sys.stdout.buffer.write(orjson.dumps(made.data()))


if __name__ == "__main__":
    main()
