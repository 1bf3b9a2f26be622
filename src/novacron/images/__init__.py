"""Images: where their bytes come from, and whether they are what they say they are.

Knows neither hypervisors nor Kubernetes: a driver takes the bytes from here to its host.
"""

from novacron.images.bytes import Bytes, FileBytes, Opened
from novacron.images.convert import Converted, converted
from novacron.images.fetch import Fetch, open_image
from novacron.images.inspect import Inspected, inspect
from novacron.images.limits import Limits
from novacron.images.reach import Reach
from novacron.images.web import WebBytes

__all__ = [
    "Bytes",
    "Converted",
    "Fetch",
    "FileBytes",
    "Inspected",
    "Limits",
    "Opened",
    "Reach",
    "WebBytes",
    "converted",
    "inspect",
    "open_image",
]
