"""Which addresses images come from: never where secrets are, and no other than was looked at."""

from collections.abc import Sequence

import pytest

from image_server import image_server
from novacron.core.errors import Rejected
from novacron.images import Limits, Reach, WebBytes, open_image


def at(*addresses: str) -> "dict[str, object]":
    return {"resolve": lambda _host, _port: addresses}


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "fd00:ec2::254",
        "fe80::1",
        "0.0.0.0",
        "::",
        "::a9fe:a9fe",
        "::7f00:1",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::1",
        "100.100.100.200",
        "224.0.0.1",
    ],
)
def test_where_machines_get_their_secrets_is_never_reached(address: str) -> None:
    """Whatever a setting allows, and whoever named it."""
    reach = Reach(allow=("0.0.0.0/0", "::/0", "sly.example"), **at(address))
    for trusted in (False, True):
        with pytest.raises(Rejected, match="never fetched") as refusal:
            reach.addresses("sly.example", 80, trusted=trusted)
        assert refusal.value.reason == "AddressDenied"


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.1.2.3", "192.168.0.1", "::1", "fd12::1", "::ffff:a00:1", "fec0::1"],
)
def test_what_is_not_public_needs_to_be_allowed(address: str) -> None:
    """By network, by name, or by an administrator who named it."""
    with pytest.raises(Rejected, match="--image-allow"):
        Reach(**at(address)).addresses("inside.example", 80)
    allowed = Reach(
        allow=("127.0.0.0/8", "10.0.0.0/8", "192.168.0.1", "::1", "fd12::/16", "fec0::/10")
    )
    assert Reach(allowed.allow, **at(address)).addresses("inside.example", 80) == [address]
    assert Reach(("Inside.Example",), **at(address)).addresses("inside.example", 80) == [address]
    assert Reach(**at(address)).addresses("inside.example", 80, trusted=True) == [address]


def test_what_is_denied_is_denied_whatever_is_allowed() -> None:
    """By name and by network."""
    public = at("93.184.215.14")
    assert Reach(**public).addresses("example.org", 443) == ["93.184.215.14"]
    for deny in ("example.org", "93.184.0.0/16"):
        with pytest.raises(Rejected, match="--image-deny"):
            Reach(("example.org",), (deny,), **public).addresses("example.org.", 443)


def test_one_bad_address_among_good_ones_is_enough() -> None:
    """Which one is connected to would be luck."""
    with pytest.raises(Rejected):
        Reach(**at("93.184.215.14", "10.0.0.1")).addresses("mixed.example", 80)


def test_a_name_that_says_something_else_the_second_time() -> None:
    """The address that was looked at is the one that is connected to."""
    asked: list[str] = []

    def rebinding(host: str, _port: int) -> Sequence[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["169.254.169.254"]

    disk = (b"\0" * 510 + b"\x55\xaa").ljust(4096, b"d")
    with image_server() as server:
        port = server.add("disk", disk).rpartition(":")[2]
        place = WebBytes(f"http://two-faced.example:{port}", Reach(("127.0.0.1",), (), rebinding))
        with open_image(place, None, Limits()) as fetch:
            assert b"".join(fetch.chunks()) == disk
    assert asked == ["two-faced.example"], "asked once, and never by the library below"


def test_a_redirect_is_looked_at_like_any_other_address() -> None:
    """Also one from a server that an administrator named."""
    with image_server() as server:
        server.moved["/disk"] = "http://169.254.169.254/latest/meta-data"
        server.moved["/inside"] = "http://127.0.0.2:1/disk"
        trusting = Reach()
        for path, words in (("/disk", "never fetched"), ("/inside", "not a public address")):
            place = WebBytes(server.url + path, trusting, trusted=True)
            with pytest.raises(Rejected, match=words), place.open():
                pass
