"""Reading images: what they amount to, and what becomes of broken connections."""

import hashlib
from collections.abc import Iterator

import pytest

from image_server import Hurried, ImageServer, image_server
from novacron.core.errors import Busy, Rejected
from novacron.images import Limits, Reach, WebBytes, open_image
from novacron.images.inspect import HEADER

DISK = (b"\0" * 510 + b"\x55\xaa").ljust(500_000, b"d")
DIGEST = hashlib.sha256(DISK).hexdigest()
LOOPBACK = Reach(allow=("127.0.0.0/8",))


@pytest.fixture
def server() -> Iterator[ImageServer]:
    with image_server() as serving:
        serving.ranges = True
        yield serving


def read(url: str, checksum: str | None = None, limits: Limits | None = None) -> bytes:
    place = WebBytes(url, LOOPBACK)
    with open_image(place, checksum, limits or Limits(), clock=Hurried()) as fetch:
        return b"".join(fetch.chunks())


def test_all_bytes_come_through(server: ImageServer) -> None:
    """Also after a redirect."""
    url = server.add("disk", DISK)
    server.moved["/moved"] = "/disk"
    assert read(url) == read(f"{server.url}/moved") == DISK


def test_the_checksum_is_of_all_bytes(server: ImageServer) -> None:
    """Right passes, wrong is refused at the end and tells what it was."""
    url = server.add("disk", DISK)
    assert read(url, f"sha256:{DIGEST}") == DISK
    with pytest.raises(Rejected, match=DIGEST) as refusal:
        read(url, "sha256:" + "0" * 64)
    assert refusal.value.reason == "ChecksumMismatch"


def test_a_broken_connection_is_gone_on_from_where_it_broke(server: ImageServer) -> None:
    """Half of a large image is minutes."""
    assert read(server.add("disk", DISK, once=True)) == DISK
    assert server.started_at == [0, len(DISK) // 2]


def test_a_server_that_only_knows_whole_files_is_read_again_up_to_there(
    server: ImageServer,
) -> None:
    """A checksum proves that it is the same."""
    server.ranges = False
    assert read(server.add("disk", DISK, once=True), f"sha256:{DIGEST}") == DISK
    assert server.started_at == [0, 0]


@pytest.mark.parametrize("checksum", [None, f"sha256:{DIGEST}"])
def test_what_changed_meanwhile_is_never_mixed(server: ImageServer, checksum: str | None) -> None:
    """Half of the old image and half of the new one would be neither."""
    url = server.add("disk", DISK, once=True)
    with open_image(WebBytes(url, LOOPBACK), checksum, Limits(), clock=Hurried()) as fetch:
        chunks = fetch.chunks()
        next(chunks)
        server.add("disk", DISK.replace(b"d", b"n"))
        with pytest.raises(Busy, match=r"changed while|is still the same") as trouble:
            list(chunks)
    assert trouble.value.reason == "ImageIncomplete"


def test_a_server_that_cannot_tell_versions_apart_is_not_trusted_with_a_rest(
    server: ImageServer,
) -> None:
    """Without a mark and without a checksum nobody knows what the rest is of."""
    server.ranges = False
    with pytest.raises(Busy, match="stopped half-way"):
        read(server.add("disk", DISK, once=True))


def test_one_that_always_stops_is_given_up(server: ImageServer) -> None:
    """It is tried again later, as a whole."""
    with pytest.raises(Busy, match="stopped after 250000 of 500000 bytes") as trouble:
        read(server.add("disk", DISK, torn=True))
    assert trouble.value.reason == "ImageIncomplete"


def test_nobody_listening_is_asked_again_later() -> None:
    """It may be about to start."""
    with pytest.raises(Busy) as trouble:
        read("http://127.0.0.1:9/disk")
    assert trouble.value.reason == "ImageUnreachable"


@pytest.mark.parametrize("silent", [False, True], ids=["told by its length", "found on the way"])
def test_more_bytes_than_are_taken(server: ImageServer, silent: bool) -> None:
    """A server that does not say how much it has could give without end."""
    limits = Limits(image_bytes=len(DISK) - 1)
    server.silent_on_length = silent
    with pytest.raises(Rejected) as refusal:
        read(server.add("disk", DISK), limits=limits)
    assert refusal.value.reason == "ImageTooLarge"


def test_a_disk_that_nobody_has(server: ImageServer) -> None:
    """A few bytes can claim to be any size."""
    head = HEADER.pack(b"QFI\xfb", 3, 0, 0, 16, 2**60).ljust(4096, b"\0")
    with pytest.raises(Rejected, match="disk of 1073741824 GiB") as refusal:
        read(server.add("disk", head))
    assert refusal.value.reason == "ImageTooLarge"


def test_passwords_and_tokens_of_an_address_are_never_told(server: ImageServer) -> None:
    """Messages end up in conditions and events."""
    address = server.url.replace("http://", "http://user:secret@") + "/none?token=hidden"
    with pytest.raises(Rejected, match="404") as trouble:
        read(address)
    assert "secret" not in str(trouble.value)
    assert "hidden" not in str(trouble.value)


def test_a_redirect_never_leaves_the_web(server: ImageServer) -> None:
    """Nobody asked for a file of ours."""
    server.moved["/away"] = "file:///etc/passwd"
    with pytest.raises(Rejected) as refusal:
        read(f"{server.url}/away")
    assert refusal.value.reason == "InsecureRedirect"
