"""Images by https: only from who proves to be who was asked."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from certificates import Authority
from image_server import Hurried, ImageServer, image_server
from novacron.core.errors import Busy, Rejected
from novacron.images import Limits, Reach, WebBytes, open_image

DISK = (b"\0" * 510 + b"\x55\xaa").ljust(200_000, b"d")
LOOPBACK = Reach(allow=("127.0.0.0/8",))


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority("of the images")


@pytest.fixture
def trusted(authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trust the authority, as an operator does that is given a file of its own."""
    file = tmp_path / "authority.pem"
    file.write_bytes(authority.certificate)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))


def certificate(authority: Authority, directory: Path, address: str) -> Path:
    pair = authority.pair("images", address)
    file = directory / f"{address}.pem"
    file.write_bytes(pair.certificate + pair.key)
    return file


@pytest.fixture
def server(authority: Authority, tmp_path: Path) -> Iterator[ImageServer]:
    with image_server(certificate(authority, tmp_path, "127.0.0.1")) as serving:
        yield serving


def read(url: str) -> bytes:
    with open_image(WebBytes(url, LOOPBACK), None, Limits(), clock=Hurried()) as fetch:
        return b"".join(fetch.chunks())


@pytest.mark.usefixtures("trusted")
def test_an_image_comes_by_https(server: ImageServer) -> None:
    """Also after a redirect that stays with it."""
    url = server.add("disk", DISK)
    server.moved["/moved"] = "/disk"
    assert url.startswith("https:")
    assert read(url) == read(f"{server.url}/moved") == DISK


def test_a_server_that_nobody_vouches_for_is_asked_for_nothing(server: ImageServer) -> None:
    """What it would give could be anybody's, and what is asked for may be a secret."""
    with pytest.raises(Busy, match="certificate verify failed") as trouble:
        read(server.add("disk", DISK))
    assert trouble.value.reason == "ImageUnreachable"
    assert server.asked == []


@pytest.mark.usefixtures("trusted")
def test_a_server_with_the_certificate_of_another_one_is_asked_for_nothing(
    authority: Authority, tmp_path: Path
) -> None:
    """Whoever has one of the same authority is not yet the one that was named."""
    with image_server(certificate(authority, tmp_path, "127.0.0.2")) as impostor:
        with pytest.raises(Busy, match="certificate verify failed") as trouble:
            read(impostor.add("disk", DISK))
        assert trouble.value.reason == "ImageUnreachable"
        assert impostor.asked == []


@pytest.mark.usefixtures("trusted")
def test_a_redirect_never_leaves_https(server: ImageServer) -> None:
    """From there on anybody on the way could give us another image."""
    with image_server() as plain:
        server.moved["/away"] = plain.add("disk", DISK)
        with pytest.raises(Rejected, match="redirected from https to http:") as refusal:
            read(f"{server.url}/away")
        assert refusal.value.reason == "InsecureRedirect"
        assert plain.asked == []
