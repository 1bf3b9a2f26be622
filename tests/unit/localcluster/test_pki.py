"""Certificates are made once, repaired when damaged, renewed before they expire."""

import datetime as dt
import stat
from pathlib import Path

import pytest
from cryptography import x509

from novacron.localcluster.pki import Authority, KeyPair, signing_key

NOW = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)


def _authority(directory: Path, *, days_later: int = 0) -> Authority:
    return Authority(directory, "test", NOW + dt.timedelta(days=days_later))


def _certificate(pair: KeyPair) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pair.certificate.read_bytes())


def test_asking_twice_gives_the_same_pair(tmp_path):
    """A second `up` changes nothing, so it may not make new certificates either."""
    first = _authority(tmp_path).client("admin", "admin", ["system:masters"])
    content = first.certificate.read_bytes()
    second = _authority(tmp_path, days_later=100).client("admin", "admin", ["system:masters"])
    assert second.certificate.read_bytes() == content


def test_a_certificate_about_to_expire_is_made_anew(tmp_path):
    """A cluster that is started again after eleven months must not die in the twelfth."""
    first = _certificate(_authority(tmp_path).server("api", ["127.0.0.1"]))
    second = _certificate(_authority(tmp_path, days_later=340).server("api", ["127.0.0.1"]))
    assert second.serial_number != first.serial_number
    assert second.not_valid_after_utc > first.not_valid_after_utc


def test_another_name_makes_another_certificate(tmp_path):
    """A pair from an older version that lacks a host name would be refused by clients."""
    authority = _authority(tmp_path)
    authority.server("api", ["127.0.0.1"])
    pair = authority.server("api", ["127.0.0.1", "localhost"])
    names = _certificate(pair).extensions.get_extension_for_class(x509.SubjectAlternativeName)
    assert names.value.get_values_for_type(x509.DNSName) == ["localhost"]


@pytest.mark.parametrize("content", [b"", b"nonsense", None])
@pytest.mark.parametrize("name", ["admin.crt", "admin.key"])
def test_a_damaged_pair_is_replaced(tmp_path, name, content):
    """A power cut can leave any file empty, torn or missing."""
    authority = _authority(tmp_path)
    authority.client("admin", "admin")
    if content is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_bytes(content)
    pair = authority.client("admin", "admin")
    _certificate(pair).verify_directly_issued_by(_certificate(authority.pair))


def test_a_lost_authority_takes_its_certificates_with_it(tmp_path):
    """What a former authority signed is worth nothing under the new one."""
    authority = _authority(tmp_path)
    before = _certificate(authority.client("admin", "admin"))
    (tmp_path / "ca.key").unlink()
    after = _certificate(authority.client("admin", "admin"))
    assert after.serial_number != before.serial_number
    after.verify_directly_issued_by(_certificate(authority.pair))


def test_keys_are_for_the_user_alone(tmp_path):
    """Whoever reads the administrator's key owns the cluster."""
    authority = _authority(tmp_path / "pki")
    authority.client("admin", "admin")
    for file in (tmp_path / "pki").iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_the_token_key_survives_and_its_public_half_follows(tmp_path):
    """A new key would make every service account's token invalid."""
    pair = signing_key(tmp_path / "tokens")
    key = pair.key.read_bytes()
    pair.certificate.write_text("torn")
    again = signing_key(tmp_path / "tokens")
    assert again.key.read_bytes() == key
    assert b"BEGIN PUBLIC KEY" in again.certificate.read_bytes()
