"""Downloads whose process was killed: the next one goes on from there, with the same bytes only."""

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import libvirt
import pytest

from image_server import ImageServer, image_server
from libvirt_daemon import shared_daemon
from novacron.core.errors import Rejected
from novacron.core.image import PullPolicy
from novacron.drivers.libvirt import LibvirtHost
from novacron.drivers.libvirt.partial import Record, read_record
from novacron.drivers.libvirt.pool import PART_BYTES, Pool, open_pool
from novacron.drivers.libvirt.progress import Progress
from novacron.drivers.libvirt.shelf import InStock, Shelf
from novacron.drivers.libvirt.stock import Stock
from unit.drivers.libvirt.sources import located

MIB = 1024 * 1024
SIZE = PART_BYTES + 16 * MIB
# What is on its way when a connection ends.
SLACK = 6 * MIB
HOST = LibvirtHost("host", "", pool="resumed", pool_path="/var/lib/libvirt/resumed")
BRINGER = Path(__file__).with_name("process_that_brings.py")
REPOSITORY = Path(__file__).parents[4]


def disk(seed: int) -> bytes:
    """Return a raw disk that cannot be told from another by its beginning."""
    return b"\0" * 510 + b"\x55\xaa" + random.Random(seed).randbytes(SIZE - 512)


def checksum_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@dataclass
class Scene:
    """A host's pool and a server that gives its bytes slowly."""

    pool: Pool
    server: ImageServer
    uri: str
    now: float = 1000.0

    def stock(self, most_bytes: int | None = None) -> Stock:
        return Stock(most_bytes=most_bytes, sleep=self.sleep, clock=lambda: self.now)

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def killed(self, address: str, checksum: str = "") -> Record:
        """Have a process bring an image, end it half-way, and return how far it was."""
        self.server.stops_at = PART_BYTES + 3 * MIB
        path = os.pathsep.join([str(REPOSITORY / "src"), str(REPOSITORY / "tests")])
        process = subprocess.Popen(
            [sys.executable, str(BRINGER), self.uri, address, checksum],
            env={**os.environ, "PYTHONPATH": path},
        )
        try:
            deadline = time.monotonic() + 60
            while (record := self.record()) is None or not record.stored:
                assert process.poll() is None, "it ended by itself"
                assert time.monotonic() < deadline, "it stores nothing"
                time.sleep(0.02)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
        self.server.stops_at = None
        time.sleep(0.3)  # what the server still sends to the dead
        self.server.served = 0
        return record

    def record(self) -> Record | None:
        stems = Shelf(self.pool.names()).unfinished()
        return next((found for stem in stems if (found := read_record(self.pool, stem))), None)

    def ensure(self, address: str, checksum: str | None = None) -> InStock:
        image = located(address, checksum)
        return self.stock().ensure(self.pool, image, PullPolicy.IF_NOT_PRESENT, Progress())

    @property
    def unfinished(self) -> list[str]:
        return list(Shelf(self.pool.names()).unfinished())


@pytest.fixture
def scene() -> Iterator[Scene]:
    uri = shared_daemon().uri
    connection = libvirt.open(uri)
    pool = open_pool(
        connection, LibvirtHost("host", uri, pool="resumed", pool_path="/var/lib/libvirt/resumed")
    )
    with image_server() as server:
        server.ranges = True
        yield Scene(pool, server, uri)
    for name in pool.names():
        pool.remove(name)
    pool.pool.destroy()
    pool.pool.undefine()
    connection.close()


@pytest.mark.parametrize("by", ["http", pytest.param("s3", marks=pytest.mark.full)])
def test_a_download_goes_on_where_a_killed_process_left_it(scene: Scene, by: str) -> None:
    """Also without a checksum: the server recognises what it gave."""
    content = disk(1)
    address = scene.server.add("bucket/disk", content)
    address = address if by == "http" else f"s3+{address}"
    record = scene.killed(address)
    assert record.stored >= PART_BYTES
    image = scene.ensure(address)
    assert scene.server.served < SIZE - record.stored + SLACK
    assert scene.server.started_at[-1] == record.stored
    assert scene.pool.read(image.volume) == content
    assert scene.unfinished == []
    assert len([name for name in scene.pool.names() if image.key in name]) == 3


def test_a_checksum_is_that_of_the_whole(scene: Scene) -> None:
    """What was stored before is looked at too: one wrong byte in it is found."""
    content = disk(2)
    checksum = checksum_of(content)
    address = scene.server.add("disk", content)
    record = scene.killed(address, checksum)
    scene.pool.go_on(record.volume, 5 * MIB, iter([b"wrong"]), lambda _: None)
    with pytest.raises(Rejected, match="not the checksum"):
        scene.ensure(address, checksum)
    assert scene.unfinished == [], "nothing of it is left to go on with"
    scene.server.served = 0
    image = scene.ensure(address, checksum)
    assert scene.pool.read(image.volume) == content
    assert scene.server.served >= SIZE


@pytest.mark.parametrize("proven", [pytest.param(False, marks=pytest.mark.full), True])
def test_a_file_that_changed_is_read_from_its_beginning(scene: Scene, *, proven: bool) -> None:
    """Though its length and its first bytes are the same; nothing of the old one is left."""
    old, new = disk(3), disk(4)
    checksum = checksum_of(new) if proven else None
    address = scene.server.add("disk", old)
    scene.killed(address, checksum or "")
    scene.server.add("disk", new)
    image = scene.ensure(address, checksum)
    assert scene.pool.read(image.volume) == new
    assert scene.server.served >= SIZE
    stock = scene.stock()
    for _ in range(2):
        stock.tidy(scene.pool)
        scene.now += 1000
    assert scene.unfinished == []


@pytest.mark.full
def test_an_image_in_another_format_goes_on_too(scene: Scene, tmp_path: Path) -> None:
    """It is stored as it comes, and converted when it is whole."""
    (tmp_path / "raw").write_bytes(disk(5))
    convert = ["qemu-img", "convert", "-O", "vmdk", str(tmp_path / "raw"), str(tmp_path / "vmdk")]
    subprocess.run(convert, check=True)
    content = (tmp_path / "vmdk").read_bytes()
    address = scene.server.add("disk.vmdk", content)
    record = scene.killed(address)
    image = scene.ensure(address)
    assert scene.server.served < len(content) - record.stored + SLACK
    assert (image.format, image.virtual_bytes) == ("qcow2", SIZE)
    assert scene.unfinished == []
    assert not any("download" in name for name in scene.pool.names())


def test_what_could_be_gone_on_with_stays_only_where_there_is_room(scene: Scene) -> None:
    """And not for ever; until then it counts as what images take."""
    address = scene.server.add("disk", disk(6))
    scene.killed(address)
    roomy, full = scene.stock(), scene.stock(most_bytes=MIB)
    for stock in (roomy, full):
        stock.tidy(scene.pool)
    scene.now += 60
    roomy.tidy(scene.pool)
    assert len(scene.unfinished) == 1
    full.tidy(scene.pool)
    assert scene.unfinished == []
