"""Images: where their bytes come from, and whether they are what they say they are.

Knows neither hypervisors nor Kubernetes: a driver takes the bytes from here to its host.
"""

from novacron.images.fetch import Fetch, Images, open_image
from novacron.images.inspect import Inspected, inspect

__all__ = ["Fetch", "Images", "Inspected", "inspect", "open_image"]
