"""Reads images from S3 and servers like it, signed (Signature Version 4) or anonymously.

Only GET of a whole object or its rest is ever signed, which is why this is forty lines and not a
library: the libraries bring a client for every service of a cloud.
"""

import hashlib
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import quote, urlsplit

from novacron.core.errors import Rejected
from novacron.images.reach import Reach
from novacron.images.web import WebBytes

__all__ = ["Bucket", "s3_bytes", "signed"]

ALGORITHM = "AWS4-HMAC-SHA256"
AGAIN = timedelta(seconds=20)
EMPTY = hashlib.sha256().hexdigest()


@dataclass(frozen=True, slots=True)
class Bucket:
    """A server of objects and who we are to it, as a Secret says; without keys, nobody.

    ``buckets`` are those that machines may have images from; all of them when there are none.
    """

    endpoint: str | None = None
    region: str = "us-east-1"
    access_key: str | None = None
    secret_key: str | None = None
    session_token: str | None = None
    buckets: tuple[str, ...] = ()

    @classmethod
    def of(cls, secret: Mapping[str, bytes]) -> "Bucket":
        """Read what a Secret holds."""
        given = {name: value.decode().strip() for name, value in secret.items()}
        if ("accessKeyID" in given) != ("secretAccessKey" in given):
            raise Rejected(
                "the Secret for s3:// has only one of accessKeyID and secretAccessKey",
                reason="CredentialsMissing",
                again=AGAIN,
            )
        return cls(
            given.get("endpoint"),
            given.get("region") or "us-east-1",
            given.get("accessKeyID"),
            given.get("secretAccessKey"),
            given.get("sessionToken"),
            tuple(name.strip() for name in given.get("buckets", "").split(",") if name.strip()),
        )

    def __repr__(self) -> str:
        return f"Bucket(endpoint={self.endpoint!r}, region={self.region!r})"


def utc_now() -> datetime:
    """Tell the time that a signature is made at."""
    return datetime.now(UTC)


def s3_bytes(source: str, bucket: Bucket, reach: Reach) -> WebBytes:
    """Return where an image s3://bucket/key is; its server is trusted if a Secret names it."""
    name, _, key = source.removeprefix("s3://").partition("/")
    if bucket.buckets and name not in bucket.buckets:
        raise Rejected(
            f"image {source}: images may come from these buckets only: {', '.join(bucket.buckets)}",
            reason="BucketDenied",
            again=AGAIN,
        )
    if {".", ".."} & set(key.split("/")):
        # A server that takes it for a path would give what is in another bucket.
        raise Rejected(f"image {source} is no plain key in a bucket", reason="ImageNotFound")
    endpoint = bucket.endpoint or f"https://s3.{bucket.region}.amazonaws.com"
    if urlsplit(endpoint).scheme not in ("http", "https"):
        raise Rejected(
            f"the endpoint for s3:// is {endpoint}; it must begin with https:// or http://",
            reason="CredentialsMissing",
            again=AGAIN,
        )
    url = f"{endpoint.rstrip('/')}/{quote(name, safe='')}/{quote(key, safe='/~')}"
    return WebBytes(
        url,
        reach,
        trusted=bucket.endpoint is not None,
        headers=lambda: signed(url, bucket),
        name=source,
    )


def signed(url: str, bucket: Bucket, now: Callable[[], datetime] = utc_now) -> dict[str, str]:
    """Return the headers that a GET of an address is signed with."""
    if bucket.access_key is None or bucket.secret_key is None:
        return {}
    parts, moment = urlsplit(url), now().strftime("%Y%m%dT%H%M%SZ")
    headers = {
        "host": parts.netloc,
        "x-amz-content-sha256": EMPTY,
        "x-amz-date": moment,
        **({"x-amz-security-token": bucket.session_token} if bucket.session_token else {}),
    }
    names = ";".join(sorted(headers))
    lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    request = "\n".join(["GET", parts.path, parts.query, lines, names, EMPTY])
    scope = f"{moment[:8]}/{bucket.region}/s3/aws4_request"
    digest = hashlib.sha256(request.encode()).hexdigest()
    text = "\n".join([ALGORITHM, moment, scope, digest])
    key = f"AWS4{bucket.secret_key}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    credential = f"{ALGORITHM} Credential={bucket.access_key}/{scope}"
    headers["Authorization"] = f"{credential}, SignedHeaders={names}, Signature={signature}"
    del headers["host"]
    return headers
