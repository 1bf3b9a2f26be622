"""How fast a machine may be sent, in the whole MiB that libvirt knows."""

import pytest

from novacron.core.errors import Rejected
from novacron.core.move import MovePolicy
from novacron.drivers.libvirt.arrivals import Reception
from novacron.drivers.libvirt.departures import Route, require_bandwidth

MIB = 1024 * 1024


def route(*copied: str) -> Route:
    """Return a way on which these disks are copied."""
    return Route("b", "qemu+tls://b/system", None, False, Reception("", {}, copied))


@pytest.mark.parametrize("copied", [(), ("vda",), ("vda", "vdc", "vdd")])
def test_a_machine_may_travel_with_a_mib_for_each_disk(copied: tuple[str, ...]) -> None:
    """Or as fast as can be, where nobody said how fast."""
    require_bandwidth(route(*copied), MovePolicy(bandwidth_bytes=max(1, len(copied)) * MIB))
    require_bandwidth(route(*copied), MovePolicy())


@pytest.mark.parametrize("copied", [(), ("vda",), ("vda", "vdc", "vdd")])
def test_a_machine_that_would_travel_too_fast_stays(copied: tuple[str, ...]) -> None:
    """It says how much it takes."""
    least = max(1, len(copied))
    with pytest.raises(Rejected, match=f"a bandwidth of {least}Mi or more") as caught:
        require_bandwidth(route(*copied), MovePolicy(bandwidth_bytes=least * MIB - 1))
    assert caught.value.reason == "BandwidthTooLow"
