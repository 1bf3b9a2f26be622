"""Images: where their bytes come from, and whether they are what they say they are.

Knows neither hypervisors nor Kubernetes: a driver takes the bytes from here to its host.
"""

from novacron.images.bytes import Bytes, FileBytes, Opened
from novacron.images.catalogue import Catalogue, Entry, shipped
from novacron.images.checksums import checksum_from
from novacron.images.convert import Converted, converted
from novacron.images.fetch import Fetch, open_image
from novacron.images.inspect import Inspected, inspect
from novacron.images.limits import Limits
from novacron.images.located import HostFile, Locate, Located, require_minimum
from novacron.images.reach import Reach
from novacron.images.s3 import Bucket, s3_bytes
from novacron.images.web import WebBytes

__all__ = [
    "Bucket",
    "Bytes",
    "Catalogue",
    "Converted",
    "Entry",
    "Fetch",
    "FileBytes",
    "HostFile",
    "Inspected",
    "Limits",
    "Locate",
    "Located",
    "Opened",
    "Reach",
    "WebBytes",
    "checksum_from",
    "converted",
    "inspect",
    "open_image",
    "require_minimum",
    "s3_bytes",
    "shipped",
]
