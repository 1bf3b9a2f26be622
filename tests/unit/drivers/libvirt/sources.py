"""Where the images of these tests are: on a server of loopback, by http or as an S3 bucket."""

from novacron.images import Bucket, Located, Reach, WebBytes, s3_bytes

__all__ = ["located"]

LOOPBACK = Reach(allow=("127.0.0.0/8",))


def located(address: str, checksum: str | None) -> Located:
    """Return where an image is; s3+http://server/bucket/key is in a bucket."""
    if not address.startswith("s3+"):
        return Located(address, WebBytes(address, LOOPBACK), checksum)
    endpoint, bucket, key = address.removeprefix("s3+").rsplit("/", 2)
    known = Bucket(endpoint, access_key="test", secret_key="not a secret")
    source = f"s3://{bucket}/{key}"
    return Located(source, s3_bytes(source, known, LOOPBACK), checksum)
