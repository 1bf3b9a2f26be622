"""Images in buckets: who we are to the server, and which buckets machines may name."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

import versitygw
from novacron.core.errors import Busy, Rejected
from novacron.images import Bucket, Limits, Reach, open_image, s3_bytes
from novacron.images.s3 import signed
from novacron.localcluster.ports import free_port
from operators import eventually

DISK = (b"\0" * 510 + b"\x55\xaa").ljust(3_000_000, b"d")
KEY = "images/a disk+1.raw"


def test_a_request_is_signed_as_the_standard_says() -> None:
    """The figures were made once with botocore 1.44.0, which signs the same request."""
    bucket = Bucket("https://s3.example", "eu-west-1", "AKIDEXAMPLE", "wJalrXUtnFEMI", "token")
    place = s3_bytes("s3://pictures/a/b c.raw", bucket, Reach())
    assert place.url == "https://s3.example/pictures/a/b%20c.raw"
    found = signed(place.url, bucket, lambda: datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    assert found["x-amz-date"] == "20260102T030405Z"
    assert found["Authorization"] == (
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260102/eu-west-1/s3/aws4_request, "
        "SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token, "
        "Signature=4ba936c8b280eea019bd605e97efe197214755e7faef80d8d7d0b435a225b9d8"
    )


def test_nobody_is_nobody() -> None:
    """Public buckets need no keys, and get none."""
    place = s3_bytes("s3://public/disk", Bucket.of({}), Reach())
    assert place.url == "https://s3.us-east-1.amazonaws.com/public/disk"
    assert not place.trusted
    assert place.headers() == {}


def test_a_secret_may_say_which_buckets() -> None:
    """Otherwise everybody who may have a machine could read all that the keys may."""
    bucket = Bucket.of({"endpoint": b"https://s3.example", "buckets": b"golden, public\n"})
    assert s3_bytes("s3://golden/disk", bucket, Reach()).trusted
    with pytest.raises(Rejected, match="golden, public") as refusal:
        s3_bytes("s3://private/disk", bucket, Reach())
    assert refusal.value.reason == "BucketDenied"


@pytest.mark.parametrize("key", ["../private/disk", "a/../../private/disk", "./disk", "a/.."])
def test_a_key_does_not_lead_to_another_bucket(key: str) -> None:
    """A server that takes keys for paths would go there."""
    bucket = Bucket.of({"endpoint": b"https://s3.example", "buckets": b"golden"})
    with pytest.raises(Rejected, match="no plain key") as refusal:
        s3_bytes(f"s3://golden/{key}", bucket, Reach())
    assert refusal.value.reason == "ImageNotFound"
    assert s3_bytes("s3://golden/..disk../.x", bucket, Reach()).url.endswith("/..disk../.x")


@pytest.mark.parametrize(
    "secret", [{"accessKeyID": b"only"}, {"secretAccessKey": b"only"}, {"endpoint": b"s3.example"}]
)
def test_half_a_secret_says_what_is_missing(secret: dict[str, bytes]) -> None:
    """Before a server answers with something unclear."""
    with pytest.raises(Rejected) as refusal:
        s3_bytes("s3://b/k", Bucket.of(secret), Reach())
    assert refusal.value.reason == "CredentialsMissing"


@pytest.mark.parametrize(
    "secret",
    [
        {"accessKeyID": b"only"},
        {"secretAccessKey": b"only"},
        {"endpoint": b"s3.example"},
        {"buckets": b"golden"},
    ],
)
def test_what_a_secret_refuses_is_asked_again(secret: dict[str, bytes]) -> None:
    """Whoever mends it cannot tell all machines that wait for it."""
    with pytest.raises(Rejected) as refusal:
        s3_bytes("s3://private/disk", Bucket.of(secret), Reach())
    assert refusal.value.again


def test_keys_are_never_shown() -> None:
    """Values of core and settings end up in logs."""
    assert "hidden" not in repr(Bucket(access_key="hidden", secret_key="hidden"))


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real server that checks signatures."""
    directory: Path = tmp_path_factory.mktemp("s3") / "buckets"
    (directory / "golden/images").mkdir(parents=True)
    (directory / "golden" / KEY).write_bytes(DISK)
    port = free_port()
    with versitygw.serving(directory, port) as url:
        yield url


def bytes_of(source: str, bucket: Bucket) -> bytes:
    with open_image(s3_bytes(source, bucket, Reach()), None, Limits()) as fetch:
        assert fetch.length == len(DISK)
        return b"".join(fetch.chunks())


@pytest.mark.full
def test_a_real_server_takes_our_signature_and_no_other(endpoint: str) -> None:
    """versitygw refuses a wrong secret, which simulators do not."""
    known = Bucket(endpoint, "us-east-1", versitygw.ACCESS, versitygw.SECRET)
    source = f"s3://golden/{KEY}"
    eventually(lambda: answers(source, known), lambda: "versitygw answers", 30)
    assert bytes_of(source, known) == DISK
    for other in (
        Bucket(endpoint, "us-east-1", versitygw.ACCESS, "wrong"),
        Bucket(endpoint, "us-east-1"),
    ):
        with pytest.raises(Rejected, match="403"):
            bytes_of(source, other)
    with pytest.raises(Rejected, match="404"):
        bytes_of("s3://golden/none", known)


@pytest.mark.full
def test_a_real_server_gives_the_rest(endpoint: str) -> None:
    """Half of a large image is minutes."""
    known = Bucket(endpoint, "us-east-1", versitygw.ACCESS, versitygw.SECRET)
    place = s3_bytes(f"s3://golden/{KEY}", known, Reach())
    eventually(lambda: answers(f"s3://golden/{KEY}", known), lambda: "versitygw answers", 30)
    with place.open() as whole:
        validator, version = whole.validator, whole.version
    with place.open(2_000_000, validator) as rest:
        assert (rest.start, rest.length, rest.version) == (2_000_000, len(DISK), version)
        pieces = iter(lambda: rest.stream.read(len(DISK)), b"")
        assert b"".join(pieces) == DISK[2_000_000:]


def answers(source: str, bucket: Bucket) -> bool:
    try:
        return bytes_of(source, bucket) == DISK
    except Busy:
        return False
