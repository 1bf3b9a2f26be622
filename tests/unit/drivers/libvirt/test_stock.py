"""The images on a real host: shared, remembered, resumed by others, and cleared away in time."""

import hashlib
import json
import subprocess
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import libvirt
import pytest

from image_server import ImageServer, image_server
from libvirt_daemon import own_daemon
from novacron.core.errors import Busy, Rejected
from novacron.core.image import PullPolicy
from novacron.drivers.libvirt import LibvirtHost, clearance
from novacron.drivers.libvirt.clearance import clear_images
from novacron.drivers.libvirt.host_file import source_pool
from novacron.drivers.libvirt.partial import Record, read_record
from novacron.drivers.libvirt.pool import Pool, open_pool
from novacron.drivers.libvirt.progress import Progress
from novacron.drivers.libvirt.shelf import InStock, Shelf, claim, key_of, lot_of, new_stem
from novacron.drivers.libvirt.stock import Stock
from novacron.images import HostFile, Limits, Located, Reach, WebBytes, open_image
from novacron.images.bytes import Opened
from novacron.images.inspect import HEADER_BYTES

MIB = 1024 * 1024
BOOT = b"\0" * 510 + b"\x55\xaa"
NOW = (PullPolicy.IF_NOT_PRESENT, Progress())
LOOPBACK = Reach(allow=("127.0.0.0/8",))


def raw(content: bytes) -> bytes:
    """Return a raw disk that differs from others."""
    return (BOOT + content).ljust(MIB, content[:1])


def as_vmdk(directory: Path, content: bytes) -> bytes:
    """Return a raw disk, which stays in a file, as another hypervisor has it."""
    disk, made = directory / "disk.raw", directory / "disk.vmdk"
    disk.write_bytes(content)
    subprocess.run(["qemu-img", "convert", "-O", "vmdk", disk, made], check=True)
    return made.read_bytes()


def checksum_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@dataclass
class Time:
    """A clock that goes when somebody waits."""

    now: float = 1000.0
    waits: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    def stock(self, most_bytes: int | None = None) -> Stock:
        return Stock(most_bytes=most_bytes, sleep=self.sleep, clock=lambda: self.now)


@dataclass
class Scene:
    """A host's pool, a server of images, and a stock."""

    pool: Pool
    server: ImageServer
    stock: Stock
    time: Time
    daemon: str

    def at(self, url: str, checksum: str | None = None) -> Located:
        return Located(url, WebBytes(url, LOOPBACK), checksum)

    def ensure(self, located: Located, pull: PullPolicy = PullPolicy.IF_NOT_PRESENT) -> InStock:
        return self.stock.ensure(self.pool, located, pull, Progress())

    def content(self, image: InStock) -> bytes:
        return self.pool.read(image.volume)

    @property
    def names(self) -> set[str]:
        return set(self.pool.names())


@pytest.fixture(scope="module")
def connection() -> Iterator[tuple[libvirt.virConnect, Path]]:
    with own_daemon() as daemon:
        opened = libvirt.open(daemon.uri)
        yield opened, daemon.directory
        opened.close()


@pytest.fixture
def scene(connection: tuple[libvirt.virConnect, Path]) -> Iterator[Scene]:
    opened, directory = connection
    pool = open_pool(opened, LibvirtHost("host", "qemu:///system"))
    for name in pool.names():
        pool.remove(name)
    time = Time()
    with image_server() as server:
        server.ranges = True
        yield Scene(pool, server, time.stock(), time, str(directory / "lib/novacron"))


def test_one_image_is_brought_once_whatever_it_is_called(scene: Scene) -> None:
    """The same digest is the same image, also under another address."""
    content = raw(b"shared")
    checksum = f"sha256:{hashlib.sha256(content).hexdigest()}"
    one = scene.ensure(scene.at(scene.server.add("one", content), checksum))
    two = scene.ensure(scene.at(scene.server.add("two", content), checksum))
    assert one == two
    assert scene.server.asked == ["/one"]
    assert scene.content(one) == content
    assert one.virtual_bytes == len(content)


@dataclass
class Interrupted:
    """A place of bytes; when those are read by which an image is told, something else happens."""

    content: bytes
    happens: Callable[[], object]
    shown: str = "interrupted"
    identity: str = "interrupted"
    left: bytes = b""

    @contextmanager
    def open(self, start: int = 0, validator: str = "") -> Iterator[Opened]:  # noqa: ARG002
        self.left = self.content[start:]
        yield Opened(self, start, len(self.content), "")

    def read(self, size: int) -> bytes:
        if len(self.left) == len(self.content) - HEADER_BYTES:
            self.happens()
        part, self.left = self.left[:size], self.left[size:]
        return part


@pytest.mark.parametrize("kind", ["raw", "vmdk"])
def test_of_an_image_that_comes_from_two_places_at_once_the_one_that_is_whole_first_stays(
    scene: Scene, tmp_path: Path, kind: str
) -> None:
    """Nobody waits for what any server promises, but the room is taken once."""
    content = raw(b"twice") if kind == "raw" else as_vmdk(tmp_path, raw(b"twice"))
    url, checksum = scene.server.add("one", content), checksum_of(content)
    first: list[InStock] = []

    def brought_by_another_process() -> None:
        stock = scene.time.stock()
        first.append(stock.ensure(scene.pool, scene.at(url, checksum), *NOW))
        mark = Path(scene.daemon) / first[0].mark
        subprocess.run(["touch", "-d", "-4000 seconds", mark], check=True)

    place = Interrupted(content, brought_by_another_process)
    assert [scene.ensure(Located("two", place, checksum))] == first
    memories = {name for name in scene.names if name.startswith("image-of-")}
    assert scene.names - memories == {first[0].volume, first[0].mark}
    assert len(memories) == 2, "the bytes were read in both places"
    mark = Path(scene.daemon) / first[0].mark
    assert mark.stat().st_mtime > time.time() - 60, "so it is not the one that makes room"


def test_what_another_process_found_whole_itself_is_not_dropped_for_itself(scene: Scene) -> None:
    """It was taken for dead, and somebody went on with its volume, and then it finished that."""
    content = raw(b"same")

    def finished_by_the_one_taken_for_dead() -> None:
        [volume] = (name for name in scene.names if name.endswith(".raw"))
        scene.pool.empty(InStock(volume, "raw", MIB).mark, 0, "raw")

    place = Interrupted(content, finished_by_the_one_taken_for_dead)
    image = scene.ensure(Located("same", place, checksum_of(content)))
    assert scene.content(image) == content


def test_when_the_source_is_asked_again(scene: Scene) -> None:
    """Always finds out that the image changed, IfNotPresent takes what is here, Never only that."""
    url = scene.server.add("disk", raw(b"old"))
    with pytest.raises(Rejected, match="pullPolicy is Never") as refusal:
        scene.ensure(scene.at(url), PullPolicy.NEVER)
    assert refusal.value.reason == "ImageNotPresent"
    old = scene.ensure(scene.at(url))
    scene.server.add("disk", raw(b"new"))
    assert scene.ensure(scene.at(url)) == old
    new = scene.ensure(scene.at(url), PullPolicy.ALWAYS)
    assert scene.content(new) == raw(b"new")
    assert scene.ensure(scene.at(url)) == new, "what came last from there"
    assert scene.ensure(scene.at(url), PullPolicy.ALWAYS) == new
    assert scene.ensure(scene.at(url), PullPolicy.NEVER) == new
    assert len(scene.server.asked) == 3


def test_a_file_of_checksums_tells_versions_apart(scene: Scene) -> None:
    """It is read instead of the image."""

    def located() -> Located:
        sums = WebBytes(f"{scene.server.url}/SUMS", LOOPBACK)
        place = WebBytes(f"{scene.server.url}/disk", LOOPBACK)
        return Located("marketplace://x", place, checksums=sums)

    for word in (b"first", b"second"):
        content = raw(word)
        scene.server.add("disk", content)
        scene.server.add("SUMS", f"{hashlib.sha256(content).hexdigest()}  disk\n".encode())
        assert scene.content(scene.ensure(located(), PullPolicy.ALWAYS)) == content
    scene.ensure(located(), PullPolicy.ALWAYS)
    assert scene.server.asked.count("/disk") == 2


def test_a_checksum_that_anybody_names_says_nothing_of_the_source(scene: Scene) -> None:
    """Or whoever brought an image of his own would give it to all who ask for a well-known one."""
    known, own = raw(b"known"), raw(b"own")
    url = scene.server.add("known", known)
    first = scene.ensure(scene.at(url))
    planted = scene.ensure(scene.at(scene.server.add("own", own), checksum_of(own)))
    assert scene.ensure(scene.at(url, checksum_of(own))) == planted, "for himself"
    assert scene.ensure(scene.at(url)) == first
    assert scene.time.stock().ensure(scene.pool, scene.at(url), *NOW) == first, "also later"


def test_what_came_from_a_source_is_remembered_whoever_named_its_checksum(scene: Scene) -> None:
    """The bytes were read there, or the administrator who named the place says what is there."""
    content = raw(b"one")
    url = scene.server.add("one", content)
    image = scene.ensure(scene.at(url, checksum_of(content)))
    assert scene.ensure(scene.at(url)) == image
    other = scene.server.add("other", content)
    scene.ensure(replace(scene.at(other, checksum_of(content)), vouched=True))
    assert scene.ensure(scene.at(other)) == image
    assert scene.server.asked == ["/one"]


def test_what_one_server_began_is_not_gone_on_with_from_another(scene: Scene) -> None:
    """Its beginning and the end of somebody else's would be an image of that source."""
    known = raw(b"known").ljust(3 * MIB, b"k")
    mixed = known[:MIB] + b"planted!" + known[MIB + 8 :]
    scene.server.ranges = False
    theirs = scene.server.add("known", known)
    shelf = new_stem(lot_of(key_of(checksum_of(mixed)), f"{scene.server.url}/own"))
    record = Record(f"{shelf}.raw", "", len(known), 2 * MIB, left=True)
    scene.pool.fill(record.volume, len(known), [mixed[: 2 * MIB]])
    record.write(scene.pool, shelf, 1)
    with pytest.raises(Rejected, match="not the checksum"):
        scene.ensure(scene.at(theirs, checksum_of(mixed)))
    assert scene.content(scene.ensure(scene.at(theirs))) == known


def test_what_took_somebody_long_takes_no_more_to_go_on_with(scene: Scene) -> None:
    """A claim grows for days over a slow line: no process can hold all of it each time."""
    content = raw(b"slow").ljust(3 * MIB, b"s")
    image = scene.at(scene.server.add("disk", content))
    with open_image(image.place, None, Limits()) as fetch:
        version = fetch.version
    stem = new_stem(lot_of(key_of(f"{image.identity} {version}"), image.identity))
    record = Record(f"{stem}.raw", version, len(content), 2 * MIB, left=True)
    scene.pool.fill(record.volume, len(content), [content[: 2 * MIB]])
    scene.pool.fill(claim(stem), 0, [json.dumps(asdict(record)).encode() + b"\n"])
    scene.pool.extend(claim(stem), 128 * MIB)
    tracemalloc.start()
    try:
        assert scene.content(scene.ensure(image)) == content
        assert tracemalloc.get_traced_memory()[1] < 64 * MIB
    finally:
        tracemalloc.stop()
    assert scene.server.started_at[-1] == 2 * MIB, "it was gone on with"


@pytest.mark.parametrize("beats", [1, 100_000])
def test_a_record_is_short_and_its_claim_as_long_as_it_took(scene: Scene, beats: int) -> None:
    """Also one of a server that tells much of a version."""
    record = Record("image.raw", "v" * 5000, 1, 1)
    scene.pool.empty(record.volume, 0, "raw")
    record.write(scene.pool, "image", beats)
    assert read_record(scene.pool, "image") == record
    volume = scene.pool.find(claim("image"))
    assert volume is not None
    _, length, room = volume.info()
    assert length > 4096 * beats
    assert room < 64 * 1024


def test_other_formats_are_converted_once(scene: Scene, tmp_path: Path) -> None:
    """The second machine has the qcow2 at once."""
    located = scene.at(scene.server.add("disk.vmdk", as_vmdk(tmp_path, raw(b"foreign"))))
    image = scene.ensure(located)
    assert (image.format, image.virtual_bytes) == ("qcow2", MIB)
    got = tmp_path / "got.qcow2"
    got.write_bytes(scene.content(image))
    subprocess.run(
        ["qemu-img", "compare", got, tmp_path / "disk.raw"], check=True, stdout=subprocess.DEVNULL
    )
    assert scene.ensure(located) == image
    assert scene.server.asked == ["/disk.vmdk"]


def test_nothing_stays_of_one_that_fails(scene: Scene) -> None:
    """Neither a part of it nor the claim to it."""
    with pytest.raises(Rejected):
        scene.ensure(scene.at(scene.server.add("disk", raw(b"x")), "sha256:" + "0" * 64))
    assert scene.names == set()


@pytest.mark.parametrize("packed", [False, True])
def test_what_another_process_brings_is_waited_for_as_long_as_it_grows(
    scene: Scene, *, packed: bool
) -> None:
    """Its claim grows even while its source is silent, also where zeros take up no room."""
    content = raw(b"slow")
    url = scene.server.add("disk", content)
    theirs = scene.ensure(scene.at(url))
    stem = theirs.volume.partition(".")[0]
    scene.pool.remove(theirs.mark)
    beats = 0

    def beat(seconds: float) -> None:
        nonlocal beats
        scene.time.sleep(seconds)
        beats += 1
        if beats < 60:
            scene.pool.fill(f"{stem}.claim", 0, [] if packed else [bytes(4096 * beats)])
            scene.pool.pool.storageVolLookupByName(f"{stem}.claim").resize(4096 * beats)
        else:
            scene.pool.empty(theirs.mark, 0, "raw")

    scene.stock = Stock(sleep=beat, clock=lambda: scene.time.now)
    assert scene.ensure(scene.at(url), PullPolicy.ALWAYS) == theirs
    assert scene.time.now - 1000 > 59
    scene.stock.tidy(scene.pool)
    assert f"{stem}.claim" not in scene.names, "a claim to what is complete says nothing"


def test_what_nobody_wants_any_more_ends(scene: Scene) -> None:
    """Whether it comes by itself or another process is waited for."""
    url = scene.server.add("disk", raw(b"disk"))
    with pytest.raises(Busy, match="nobody waits"):
        scene.stock.ensure(scene.pool, scene.at(url), PullPolicy.ALWAYS, Progress(unwanted=True))
    assert scene.names == set()
    theirs = scene.ensure(scene.at(url))
    scene.pool.remove(theirs.mark)
    progress = Progress()

    def deleted(seconds: float) -> None:
        scene.time.sleep(seconds)
        progress.unwanted = scene.time.now > 1005

    scene.stock = Stock(sleep=deleted, clock=lambda: scene.time.now)
    with pytest.raises(Busy, match="nobody waits"):
        scene.stock.ensure(scene.pool, scene.at(url), PullPolicy.ALWAYS, progress)
    assert scene.time.now < 1010


def test_what_somebody_left_is_taken_over_and_brought_anew(scene: Scene) -> None:
    """Twenty seconds without growth is death."""
    content = raw(b"orphan")
    url = scene.server.add("disk", content)
    left = scene.ensure(scene.at(url))
    scene.pool.remove(left.mark)
    image = scene.ensure(scene.at(url), PullPolicy.ALWAYS)
    assert image.volume != left.volume
    assert scene.content(image) == content
    assert left.volume not in scene.names
    assert 20 < scene.time.now - 1000 < 30


def test_what_somebody_left_goes_even_if_nobody_wants_it(scene: Scene) -> None:
    """Killed half-way, and the machine was deleted."""
    left = scene.ensure(scene.at(scene.server.add("disk", raw(b"left"))))
    scene.pool.remove(left.mark)
    scene.stock.tidy(scene.pool)
    assert left.volume in scene.names, "it may be somebody's who is at it"
    scene.time.now += 30
    scene.stock.tidy(scene.pool)
    assert scene.names == set(), "also the memory of where it came from"


def test_the_least_recently_used_images_make_room(scene: Scene) -> None:
    """Never one that a disk is on top of, nor one that was used a moment ago."""
    images = [
        scene.ensure(scene.at(scene.server.add(f"disk{number}", raw(b"%d" % number))))
        for number in range(4)
    ]
    used = scene.pool.find(images[0].volume)
    assert used is not None
    scene.pool.overlay("overlay", 64, images[0].volume, "raw")
    for age, image in ((4000, images[0]), (3000, images[1]), (2000, images[2])):
        mark = Path(scene.daemon) / image.mark
        subprocess.run(["touch", "-d", f"-{age} seconds", mark], check=True)
    clear_images(scene.pool, 3 * MIB)
    assert set(Shelf(scene.pool.names()).images()) == {images[0], images[2], images[3]}
    clear_images(scene.pool, 0)
    assert set(Shelf(scene.pool.names()).images()) == {images[0], images[3]}
    clear_images(scene.pool, 0)
    assert images[3].volume in scene.names, "used this moment"
    scene.pool.remove("overlay")
    clear_images(scene.pool, 0)
    assert set(Shelf(scene.pool.names()).images()) == {images[3]}


def test_an_image_stays_on_which_another_host_just_made_a_disk(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """libvirt here was not told of it, and the disk would have lost all it is made from."""
    image = scene.ensure(scene.at(scene.server.add("disk", raw(b"disk"))))
    place, real = Path(scene.daemon), clearance._bases
    subprocess.run(["touch", "-d", "-4000 seconds", place / image.mark], check=True)
    newer = scene.ensure(scene.at(scene.server.add("newer", raw(b"newer"))))

    looks: list[Pool] = []

    def made_meanwhile(pool: Pool) -> set[str]:
        found, base = real(pool), f"{pool.path}/{image.volume}"
        if not looks:
            order = ["qemu-img", "create", "-q", "-u", "-f", "qcow2", "-F", "raw", "-b", base]
            subprocess.run([*order, place / "theirs.qcow2", "1M"], check=True)
        looks.append(pool)
        return found

    monkeypatch.setattr(clearance, "_bases", made_meanwhile)
    clear_images(scene.pool, 0)
    assert {image, newer} <= set(Shelf(scene.pool.names()).images())


def test_a_file_that_another_host_removed_is_not_there(scene: Scene) -> None:
    """libvirt here still has it on its list."""
    scene.pool.empty("mark", 0, "raw")
    assert scene.pool.is_there("mark")
    (Path(scene.daemon) / "mark").unlink()
    assert "mark" in scene.names
    assert not scene.pool.is_there("mark")
    assert not scene.pool.is_there("never")


def test_use_counts_not_age(scene: Scene) -> None:
    """An old image that every second machine is made from stays."""
    locations = [scene.at(scene.server.add(name, raw(name.encode()))) for name in ("old", "new")]
    images = [scene.ensure(each) for each in locations]
    for image in images:
        mark = Path(scene.daemon) / image.mark
        subprocess.run(["touch", "-d", "-4000 seconds", mark], check=True)
    scene.time.now += 60
    scene.ensure(locations[0])
    clear_images(scene.pool, MIB)
    assert list(Shelf(scene.pool.names()).images()) == [images[0]]


def test_an_image_is_at_hand_as_long_as_it_is_used_but_looked_for_again_in_the_end(
    scene: Scene,
) -> None:
    """Machines of one image do not each look for it, nor believe for ever what was found once."""
    located = scene.at(scene.server.add("disk", raw(b"disk")))
    image, begun = scene.ensure(located), scene.time.now
    mark = Path(scene.daemon) / image.mark
    subprocess.run(["touch", "-d", "-4000 seconds", mark], check=True)
    while (found := scene.stock.at_hand(located, PullPolicy.IF_NOT_PRESENT)) is not None:
        assert found == image
        scene.stock.used(scene.pool, image)
        scene.time.now += 20
    assert scene.time.now - begun == 300
    assert mark.stat().st_mtime > time.time() - 60, "so it is not the one that makes room"
    scene.ensure(located)
    assert scene.stock.at_hand(located, PullPolicy.IF_NOT_PRESENT) == image
    assert scene.stock.at_hand(located, PullPolicy.ALWAYS) is None
    scene.time.now += 31
    assert scene.stock.at_hand(located, PullPolicy.IF_NOT_PRESENT) is None


def test_a_new_image_makes_room_by_itself(scene: Scene) -> None:
    """The bound is of the host, not of who asks."""
    old = scene.ensure(scene.at(scene.server.add("old", raw(b"old"))))
    subprocess.run(["touch", "-d", "-4000 seconds", Path(scene.daemon) / old.mark], check=True)
    scene.stock = scene.time.stock(MIB)
    new = scene.ensure(scene.at(scene.server.add("new", raw(b"new"))))
    assert list(Shelf(scene.pool.names()).images()) == [new]


def test_a_file_of_the_host_is_read_through_libvirt(scene: Scene, tmp_path: Path) -> None:
    """In a directory that is no pool, in one that is, and none at all."""
    (tmp_path / "disk.img").write_bytes(raw(b"file"))
    opened = scene.pool.connection
    before = {pool.name() for pool in opened.listAllStoragePools()}

    def located(directory: Path, name: str = "disk.img") -> Located:
        return Located("file://x", HostFile(str(directory), name, "file://x"))

    assert scene.content(scene.ensure(located(tmp_path))) == raw(b"file")
    for directory, name in ((tmp_path, "none"), (tmp_path / "none", "disk.img")):
        with pytest.raises(Rejected, match="the host cannot read") as refusal:
            scene.ensure(located(directory, name))
        assert refusal.value.reason == "ImageNotFound"
    assert {pool.name() for pool in opened.listAllStoragePools()} == before
    other = tmp_path / "pool"
    other.mkdir()
    (other / "disk.img").write_bytes(raw(b"pooled"))
    path = f"<target><path>{other}</path></target>"
    pool = opened.storagePoolCreateXML(f"<pool type='dir'><name>theirs</name>{path}</pool>")
    try:
        assert scene.content(scene.ensure(located(other))) == raw(b"pooled")
        assert pool.isActive(), "somebody else's stays as it is"
    finally:
        pool.destroy()


def test_a_directory_that_a_killed_process_left_open_is_closed(
    scene: Scene, tmp_path: Path
) -> None:
    """By the next one who wants it, or after a while."""
    (tmp_path / "disk.img").write_bytes(raw(b"file"))
    file = HostFile(str(tmp_path), "disk.img", "file://x")
    opened = scene.pool.connection
    before = {pool.name() for pool in opened.listAllStoragePools()}
    opened.storagePoolCreateXML(source_pool(file, scene.pool.path))
    scene.ensure(Located("file://x", file))
    assert {pool.name() for pool in opened.listAllStoragePools()} == before
    opened.storagePoolCreateXML(source_pool(file, scene.pool.path))
    scene.stock.tidy(scene.pool)
    scene.time.now += 30
    scene.stock.tidy(scene.pool)
    assert {pool.name() for pool in opened.listAllStoragePools()} == before


def test_nfs_is_mounted_by_the_host() -> None:
    """No NFS server runs here, so this is what libvirt is asked for, not that it was seen to do."""
    file = HostFile("/export/images", "disk.img", "pvc://ns/name", "nfs.local")
    assert source_pool(file, "/var/lib/libvirt/novacron") == (
        '<pool type="netfs"><name>novacron-source-NAME</name><source><host name="nfs.local" />'
        '<dir path="/export/images" /><format type="nfs" /></source><target>'
        "<path>/var/lib/libvirt/novacron-source-NAME</path></target></pool>"
    ).replace("NAME", hashlib.sha256(b"nfs.local:/export/images").hexdigest()[:12])


def test_progress_is_told_in_steps() -> None:
    """Every word of it is a write to the API server."""
    said = {Progress(done, 310 * MIB).sentence for done in range(0, 310 * MIB, MIB)}
    assert "image 45 % of 310 MiB" in said
    assert len(said) == 20
    assert Progress(100 * MIB).sentence == "image 64 MiB so far"


def test_trouble_with_an_image_is_of_the_image(scene: Scene) -> None:
    """Not of the host."""
    with pytest.raises(Busy) as trouble:
        scene.ensure(scene.at("http://127.0.0.1:9/disk"))
    assert trouble.value.reason == "ImageUnreachable"
