"""Devices are counted one by one, given once, and named when they are missing."""

import pytest

from novacron.core.devices import HostDevice
from novacron.core.wanted_device import WantedDevice
from novacron.scheduler import HostTable, Placed, choose, devices_on, one_line, refusals
from unit.scheduler.hosts import SMALL, host, machine, table


def gpu(address: str, model: str = "tesla-t4", vendor: str = "nvidia", numa: int | None = None):
    return HostDevice(address, "gpu", vendor, model, numa)


def wanting(*wanted: WantedDevice):
    return machine(wanted_devices=wanted)


T4 = WantedDevice("gpu", "nvidia", "tesla-t4")
ANY_GPU = WantedDevice("gpu")


def addresses(hosts: HostTable, *wanted: WantedDevice) -> list[str] | None:
    decision = choose(hosts, wanting(*wanted))
    if not isinstance(decision, Placed):
        return None
    return [device.address for device in decision.devices]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (T4, True),
        (ANY_GPU, True),
        (WantedDevice("GPU", "NVIDIA", "Tesla-T4"), True),
        (WantedDevice("gpu", model="tesla-t4"), True),
        (WantedDevice("gpu", "amd"), False),
        (WantedDevice("gpu", "nvidia", "a100"), False),
        (WantedDevice("nic"), False),
        (WantedDevice("gpu", count=2), False),
    ],
    ids=str,
)
def test_a_device_is_met_by_type_vendor_model_and_count(wanted: WantedDevice, found: bool) -> None:
    """What is not said does not matter, nor does how it is capitalised."""
    assert (addresses(table(host("a", devices=(gpu("1"),))), wanted) == ["1"]) is found


def test_a_share_of_a_device_is_met_and_given_once_as_any_other() -> None:
    """It is known by its UUID, and is none of the cards that it is made of."""
    share = HostDevice("4b20d080-1b54-4048-85b3-a6a62d165c01", "mdev", "nvidia", "grid-t4-2q")
    hosts, wanted = table(host("a", devices=(gpu("1"), share))), WantedDevice("mdev", "nvidia")
    assert addresses(hosts, wanted) == [share.address]
    assert addresses(hosts, WantedDevice("mdev", "nvidia", "grid-t4-4q")) is None
    hosts.take("one", "a", SMALL, devices=(share.address,))
    assert addresses(hosts, wanted) is None
    assert addresses(hosts, ANY_GPU) == ["1"]


def test_a_device_is_given_once_and_comes_back_with_its_machine() -> None:
    """Whatever else the host has room for."""
    hosts = table(host("a", devices=(gpu("1"), gpu("2"))))
    hosts.take("one", "a", SMALL, devices=("1",))
    assert addresses(hosts, T4) == ["2"]
    hosts.take("two", "a", SMALL, devices=("2",))
    assert addresses(hosts, T4) is None
    hosts.release("one")
    assert addresses(hosts, T4) == ["1"]


def test_a_device_stays_taken_while_its_host_is_not_declared() -> None:
    """Or does not list it for a while."""
    hosts = table(host("a", devices=(gpu("1"),)))
    hosts.take("one", "a", SMALL, devices=("1",))
    hosts.remove("a")
    hosts.upsert(host("a"))
    hosts.upsert(host("a", devices=(gpu("1"),)))
    assert addresses(hosts, T4) is None


def test_wishes_that_compete_are_all_met_if_there_is_a_way() -> None:
    """The one that takes anything must not take what only it was good enough for another."""
    hosts = table(host("a", devices=(gpu("1"), gpu("2", "mi300", "amd"))))
    assert addresses(hosts, ANY_GPU, T4) == ["1", "2"]
    assert addresses(hosts, ANY_GPU, T4, ANY_GPU) is None
    assert addresses(hosts, T4, T4) is None


def test_devices_near_to_one_another_are_preferred() -> None:
    """Memory on the other socket is slower."""
    devices = (gpu("1", numa=0), gpu("2", numa=1), gpu("3", numa=1), gpu("4"))
    hosts = table(host("a", devices=devices))
    assert addresses(hosts, WantedDevice("gpu", count=2)) == ["2", "3"]
    assert addresses(hosts, WantedDevice("gpu", count=4)) == ["1", "2", "3", "4"]


def test_a_machine_keeps_what_it_has_where_it_is() -> None:
    """Its own devices are free for itself, and for nobody else."""
    hosts = table(host("a", devices=(gpu("1"),)))
    hosts.take("uid-1", "a", SMALL, devices=("1",))
    kept = devices_on(hosts, wanting(T4), "a")
    assert kept is not None
    assert [device.address for device in kept] == ["1"]
    hosts.take("uid-2", "a", SMALL)
    assert devices_on(hosts, machine(), "a") == ()
    assert devices_on(hosts, wanting(T4), "nowhere") is None


def test_many_equal_devices_cost_no_search() -> None:
    """Virtual functions of a network card come by the hundred."""
    devices = tuple(HostDevice(f"{n:04}", "nic", "intel", "vf") for n in range(600))
    hosts = table(host("a", devices=devices))
    found = addresses(hosts, *(WantedDevice("nic", count=60) for _ in range(10)))
    assert found is not None
    assert len(set(found)) == 600


@pytest.mark.parametrize(
    ("devices", "taken", "words"),
    [
        ((), (), "(needs 2 gpu nvidia tesla-t4, has none)"),
        ((gpu("1"),), (), "(needs 2 gpu nvidia tesla-t4, has 1, 1 of them free)"),
        ((gpu("1"), gpu("2")), ("1",), "(needs 2 gpu nvidia tesla-t4, has 2, 1 of them free)"),
        (
            (gpu("1"), gpu("2")),
            ("1", "2"),
            "(needs 2 gpu nvidia tesla-t4, has 2, none of them free)",
        ),
    ],
)
def test_the_words_say_exactly_what_is_missing(devices, taken, words: str) -> None:
    """So that its owner knows whether to wait or to buy."""
    hosts = table(host("a", devices=devices))
    if taken:
        hosts.take("x", "a", SMALL, devices=taken)
    decision = choose(hosts, wanting(WantedDevice("gpu", "nvidia", "tesla-t4", 2)))
    assert refusals(decision)[0].sentence == f"host a lacks devices {words}"


def test_the_line_for_many_hosts_says_the_most_any_has() -> None:
    """One GPU too few everywhere, or none at all."""
    wanted = wanting(WantedDevice("gpu", "nvidia", "tesla-t4", 2))
    none = choose(table(host("a"), host("b")), wanted)
    assert one_line(none) == (
        "0/2 hosts fit: 2 lack devices (needs 2 gpu nvidia tesla-t4, has none)"
    )
    few = choose(table(host("a"), host("b", devices=(gpu("1"),))), wanted)
    assert one_line(few) == (
        "0/2 hosts fit: 2 lack devices (needs 2 gpu nvidia tesla-t4, has 1 free at most)"
    )
    together = choose(table(host("a", devices=(gpu("1"),))), wanting(ANY_GPU, T4))
    assert one_line(together) == (
        "0/1 hosts fit: 1 lacks devices "
        "(needs 1 gpu and 1 gpu nvidia tesla-t4 at once, has them only one by one)"
    )
