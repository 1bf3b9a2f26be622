"""What a libvirt driver is told of the operator's settings."""

from typing import cast

import pytest

from novacron.app.libvirt import libvirt_driver
from novacron.app.settings import Settings
from novacron.core.host import DeclaredHost
from novacron.drivers.libvirt import Workshop
from novacron.images import Limits
from novacron.runtime.client import Client

# None is asked for anything before the host is.
NO_CLUSTER = cast("Client", None)


def test_the_sizes_of_images_that_are_taken_reach_the_driver(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A limit that is set and not kept is worse than none."""
    given: list[Workshop] = []
    driver = "novacron.drivers.libvirt.LibvirtDriver"
    monkeypatch.setattr(driver, lambda *each: given.append(each[3]))
    host = DeclaredHost("uid", "host", "libvirt", "qemu:///system")
    libvirt_driver(host, Settings(image_max_size="3Mi", image_max_disk="5Gi"), NO_CLUSTER)
    assert given[0].limits == Limits(image_bytes=3 * 1024**2, disk_bytes=5 * 1024**3)
