"""NoCloud disks: what is put into them is what readers find, byte for byte the same each time.

That a kernel mounts them and a guest obeys them is tested in tests/guests.
"""

import shutil
import struct
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from novacron.guests.iso9660 import SECTOR, iso9660
from novacron.guests.nocloud import NoCloudTooLarge, nocloud_image


def _files(volume: bytes) -> dict[str, bytes]:
    """Read a volume the way a reader of Joliet does: descriptor, root directory, files."""
    descriptor = volume[17 * SECTOR : 18 * SECTOR]
    assert descriptor[:6] == b"\x02CD001"
    assert descriptor[88:91] == b"%/E"
    sector, size = (struct.unpack_from("<I", descriptor, 156 + at)[0] for at in (2, 10))
    directory = volume[sector * SECTOR : sector * SECTOR + size]
    found = {}
    while length := directory[0]:
        sector, size = (struct.unpack_from("<I", directory, at)[0] for at in (2, 10))
        name = directory[33 : 33 + directory[32]]
        if name not in (b"\0", b"\1"):
            content = volume[sector * SECTOR : sector * SECTOR + size]
            found[name.decode("utf-16-be").removesuffix(";1")] = content
        directory = directory[length:]
    return found


def test_the_same_texts_make_the_same_disk():
    """A disk that is made again must not look like another one."""
    texts = ("instance-id: i-1\n", "#!/bin/sh\n", "version: 2\n")
    assert nocloud_image(*texts) == nocloud_image(*texts)


def test_texts_are_found_under_their_names():
    """In UTF-8, and bytes as they are, for user-data may be compressed."""
    found = _files(bytes(nocloud_image("local-hostname: größe\n", b"\x1f\x8b\x00", "version: 2\n")))
    assert found == {
        "meta-data": "local-hostname: größe\n".encode(),
        "network-config": b"version: 2\n",
        "user-data": b"\x1f\x8b\x00",
    }


def test_without_a_network_config_there_is_no_such_file():
    """An empty one would mean: no network."""
    assert _files(bytes(nocloud_image("instance-id: i-1\n"))).keys() == {"meta-data", "user-data"}


@given(
    st.dictionaries(
        st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1, max_size=20),
        st.binary(max_size=10) | st.integers(SECTOR - 1, SECTOR + 1).map(bytes),
        max_size=5,
    )
)
def test_any_files_are_read_back(files):
    """Sizes around a sector are where such things go wrong."""
    assert _files(bytes(iso9660("label", files))) == files


def test_the_label_is_found_by_what_cloud_init_asks(tmp_path):
    """It asks blkid for a file system with the label cidata."""
    (tmp_path / "seed").write_bytes(bytes(nocloud_image("instance-id: i-1\n")))
    blkid = shutil.which("blkid", path="/usr/sbin:/sbin:/usr/bin:/bin")
    command = [blkid, "-p", "-o", "export", tmp_path / "seed"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert {"LABEL=cidata", "TYPE=iso9660"} <= set(told)


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        (("x" * 65537, ""), "meta-data is 65537 bytes, more than the 64 KiB"),
        (("", "x" * (2**20 + 1)), "user-data is 1048577 bytes, more than the 1024 KiB"),
        (("", "", "x" * 65537), "network-config is 65537 bytes, more than the 64 KiB"),
    ],
)
def test_a_text_that_is_too_large_is_refused(texts, told):
    """Whoever wrote it must learn which one, and how large it may be."""
    with pytest.raises(NoCloudTooLarge, match=told):
        nocloud_image(*texts)
    nocloud_image(*(text[:-1] for text in texts))
