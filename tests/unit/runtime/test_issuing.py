"""Certificates over the years, with a clock of our own."""

import ssl
from datetime import UTC, datetime, timedelta

from cryptography import x509

from novacron.runtime.certificate_pair import Certificates, Lifetimes
from novacron.runtime.issuing import fresh, renewed

HOSTS = ("novacron-webhooks.novacron.svc", "localhost", "127.0.0.1")
START = datetime(2031, 5, 1, tzinfo=UTC)
LIFETIMES = Lifetimes()


def authorities(certificates: Certificates) -> list[x509.Certificate]:
    return x509.load_pem_x509_certificates(certificates.authorities)


def server(certificates: Certificates) -> x509.Certificate:
    return x509.load_pem_x509_certificate(certificates.certificate)


def handshake(certificates: Certificates, host: str, trusted: bytes | None = None) -> None:
    """Let a real client and a real server meet in memory; raises when they do not agree."""
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificates.install(serving)
    asking = ssl.create_default_context(cadata=(trusted or certificates.authorities).decode())
    asking.verify_flags |= ssl.VERIFY_X509_STRICT
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = asking.wrap_bio(to_client, to_server, server_hostname=host)
    peer = serving.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(3):
        for end in (client, peer):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert client.version() in ("TLSv1.2", "TLSv1.3")


def test_every_name_is_accepted_by_a_strict_client() -> None:
    """The API server checks the name it dials: the Service's in a cluster, loopback outside."""
    now = datetime.now(UTC)
    certificates = fresh(HOSTS, now, LIFETIMES)
    for host in HOSTS:
        handshake(certificates, host)


def test_nothing_changes_while_nothing_is_due() -> None:
    """The Secret is written only when something differs."""
    held = fresh(HOSTS, START, LIFETIMES)
    assert renewed(held, HOSTS, START + timedelta(days=59), LIFETIMES, b"") is held


def test_the_server_certificate_is_renewed_at_two_thirds_of_its_life() -> None:
    """A month is left to notice when renewal does not work."""
    held = fresh(HOSTS, START, LIFETIMES)
    now = START + timedelta(days=60)
    after = renewed(held, HOSTS, now, LIFETIMES, b"")
    assert after.certificate != held.certificate
    assert after.key != held.key
    assert after.authorities == held.authorities
    assert server(after).not_valid_after_utc == now + timedelta(days=90)


def test_a_new_authority_is_trusted_first_signs_next_and_the_old_one_goes_last() -> None:
    """At no moment may a certificate be served that the API server does not trust yet."""
    held = fresh(HOSTS, START, LIFETIMES)
    now = START + LIFETIMES.authority * 2 / 3
    # The operator ran all the time, so its server certificate is a young one.
    held = renewed(held, HOSTS, now - timedelta(days=1), LIFETIMES, held.authorities)

    added = renewed(held, HOSTS, now, LIFETIMES, held.authorities)
    assert len(authorities(added)) == 2
    assert added.certificate == held.certificate

    waiting = renewed(added, HOSTS, now, LIFETIMES, held.authorities)
    assert waiting is added

    signed = renewed(added, HOSTS, now + timedelta(minutes=1), LIFETIMES, added.authorities)
    server(signed).verify_directly_issued_by(authorities(signed)[0])
    assert signed.authorities == added.authorities

    kept = renewed(signed, HOSTS, now + timedelta(days=89), LIFETIMES, signed.authorities)
    assert kept.authorities == added.authorities
    alone = renewed(kept, HOSTS, now + timedelta(days=90), LIFETIMES, kept.authorities)
    assert authorities(alone) == authorities(added)[:1]


def test_both_authorities_verify_both_certificates_during_the_overlap() -> None:
    """Replicas reload at different moments, so old and new are met at the same time."""
    now = datetime.now(UTC)
    made = now - LIFETIMES.authority * 2 / 3
    held = fresh(HOSTS, made, LIFETIMES)
    held = renewed(held, HOSTS, now - timedelta(days=1), LIFETIMES, held.authorities)
    added = renewed(held, HOSTS, now, LIFETIMES, b"")
    signed = renewed(added, HOSTS, now, LIFETIMES, added.authorities)
    handshake(held, "localhost", added.authorities)
    handshake(signed, "localhost", added.authorities)


def test_no_server_certificate_outlives_its_authority() -> None:
    """A chain ends with its first expired part, and renewal goes by the server's own end."""
    short = Lifetimes(authority=timedelta(days=30), server=timedelta(days=90))
    held = fresh(HOSTS, START, short)
    assert server(held).not_valid_after_utc == START + short.authority


def test_after_years_without_an_operator_everything_is_made_anew_at_once() -> None:
    """Waiting for trust helps nobody when what is served has expired."""
    held = fresh(HOSTS, START, LIFETIMES)
    now = START + timedelta(days=4000)
    after = renewed(held, HOSTS, now, LIFETIMES, b"")
    assert len(authorities(after)) == 1
    server(after).verify_directly_issued_by(authorities(after)[0])
    assert server(after).not_valid_after_utc > now


def test_a_new_name_is_certified_at_once() -> None:
    """An operator that moved to another Service is not reachable under the old name."""
    held = fresh(("localhost",), datetime.now(UTC), LIFETIMES)
    after = renewed(held, HOSTS, datetime.now(UTC), LIFETIMES, held.authorities)
    assert after.authorities == held.authorities
    handshake(after, HOSTS[0])


def test_a_foreign_authority_key_means_a_fresh_start() -> None:
    """Somebody edited the Secret; nothing in it can be continued."""
    held = fresh(HOSTS, START, LIFETIMES)
    other = fresh(HOSTS, START, LIFETIMES)
    mixed = Certificates(held.certificate, held.key, held.authorities, other.authority_key)
    after = renewed(mixed, HOSTS, START, LIFETIMES, b"")
    assert not set(authorities(after)) & set(authorities(held))
    server(after).verify_directly_issued_by(authorities(after)[0])


def test_keys_are_never_shown() -> None:
    """Objects end up in log lines and tracebacks."""
    assert "PRIVATE" not in repr(fresh(HOSTS, START, LIFETIMES))
