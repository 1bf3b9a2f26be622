"""The catalogue: what comes with us, and what is added to it."""

from pathlib import Path

import pytest

from novacron.core.errors import Rejected
from novacron.core.machine import Resources
from novacron.images import Catalogue, FileBytes, Located, checksum_from, require_minimum, shipped
from novacron.images.checksums import checksum_in

SHA256, SHA512 = "a" * 64, "B" * 128


def test_what_is_shipped_can_be_used() -> None:
    """Every entry but our own is checked by a checksum and says who may log in."""
    entries = shipped().entries
    assert {"ubuntu-22.04-lts", "debian-12", "tiny"} <= set(entries)
    for entry in entries.values():
        assert entry.user
        assert entry.minimum.vcpus
        assert entry.minimum.disk_mib
        assert entry.url.startswith("https://") or entry.name == "tiny"
        assert bool(entry.checksum_file or entry.checksum) == (entry.name != "tiny")


def test_a_wrong_name_is_told_the_near_ones() -> None:
    """The commonest mistake is a version."""
    with pytest.raises(Rejected, match=r"called ubuntu-22\.04; did you mean ubuntu-22\.04-lts"):
        shipped().find("ubuntu-22.04")
    with pytest.raises(Rejected, match="novacron image list"):
        shipped().find("zzz")


def test_entries_are_added_and_replaced() -> None:
    """By whoever runs the operator."""
    text = "debian-12: {url: 'http://mirror.local/d.img', memory: 1Gi}\nmine: {url: 's3://b/k'}"
    found = shipped().extended(text, "ns/images")
    assert found.find("debian-12").minimum == Resources(0, 1024, 0)
    assert found.find("debian-12").checksum_file is None, "replaced as a whole"
    assert found.find("mine").origin == "ns/images"
    assert shipped().find("debian-12").minimum != Resources(0, 1024, 0)
    assert Catalogue({}).extended("", "empty").entries == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[", "no YAML"),
        ("- a", "entries by their names"),
        ("a: {}", "a has no url"),
        ("a: text", "a has no url"),
        ("a: {url: 'ftp://x'}", "must begin with one of https://"),
        ("a: {url: 'file:///etc/shadow'}", "must begin with one of https://"),
        ("a: {url: 'https://x', checksum: 'md5:1'}", "must be sha256:"),
        ("a: {url: 'https://x', format: iso}", "one of qcow2"),
        ("a: {url: 'https://x', memory: much}", "amounts"),
        ("a: {url: 'https://x', colour: red}", "a has colour"),
        ("A b: {url: 'https://x'}", "no name"),
    ],
)
def test_a_mistake_is_told_with_where_it_is(text: str, words: str) -> None:
    """Whoever sees it may not be who made it."""
    with pytest.raises(Rejected, match=words) as refusal:
        shipped().extended(text, "ns/images, more.yaml")
    assert "ns/images, more.yaml" in str(refusal.value)
    assert refusal.value.reason == "BadCatalogue"
    assert refusal.value.again, "the ConfigMap is mended without a word to the machine"


def test_a_machine_too_small_for_its_image_is_refused() -> None:
    """It would boot and fail, slowly."""
    located = Located("marketplace://x", FileBytes(Path("x"), "x"), minimum=Resources(2, 512, 0))
    require_minimum(located, Resources(2, 512, 1))
    with pytest.raises(Rejected, match="memory of at least 512Mi, not 256Mi"):
        require_minimum(located, Resources(2, 256, 1))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"{SHA256}  disk.img\n{'c' * 64}  other.img\n", f"sha256:{SHA256}"),
        (f"{SHA256} *disk.img\n", f"sha256:{SHA256}"),
        (f"# comment\n{SHA512}  ./disk.img\n", f"sha512:{SHA512.lower()}"),
        (f"# disk.img: 1 bytes\nSHA256 (disk.img) = {SHA256}\n", f"sha256:{SHA256}"),
        (f"{SHA256}\n", f"sha256:{SHA256}"),
        (f"{SHA256}  other.img\n", None),
        (f"{'a' * 40}  disk.img\n", None),
        ("<html>", None),
    ],
)
def test_checksums_as_distributions_write_them(text: str, found: str | None) -> None:
    """With a star, with a name before or behind, or alone."""
    assert checksum_in(text, "https://x/y/disk.img?z") == found


def test_a_file_without_the_checksum_says_so(tmp_path: Path) -> None:
    """Never to be taken for an image without one."""
    file = tmp_path / "SHA256SUMS"
    file.write_text("nothing\n")
    with pytest.raises(Rejected, match=r"no SHA-256 or SHA-512 checksum of disk\.img"):
        checksum_from(FileBytes(file, "sums"), "https://x/disk.img")
