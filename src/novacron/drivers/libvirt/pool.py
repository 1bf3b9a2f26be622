"""The storage pool of a host that is ours to use: volumes by name, filled and read by streams.

Nothing here assumes a path of this machine: the daemon may be far away.
"""

import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

import libvirt

from novacron.core.errors import Busy, DriverError, Rejected
from novacron.core.host import StorageFacts
from novacron.drivers.libvirt.errors import NOT_THERE, code_of, sentence
from novacron.drivers.libvirt.host import LibvirtHost
from novacron.drivers.libvirt.link import Link

__all__ = ["MISSING", "Pool", "class_pool", "open_pool", "read_volume", "storage_of"]

CHUNK = 256 * 1024
MIB = 1024 * 1024
# As much as is sent once more after a death, and is held at once when it is read back.
PART_BYTES = 32 * MIB
READ_BYTES = 4 * MIB
POOL_AGAIN = timedelta(seconds=30)
MISSING = "PoolMissing"
OTHERS_WRITE_SECONDS = 10.0
OTHERS_MAKE_SECONDS = 1.0
LOOK_SECONDS = 0.02
# libvirt has no number for it.
NO_FILE = re.compile("no such file", re.I)


def open_pool(connection: libvirt.virConnect, host: LibvirtHost) -> "Pool":
    """Return the host's pool, made and started if need be."""
    try:
        pool = connection.storagePoolLookupByName(host.pool)
    except libvirt.libvirtError as error:
        if code_of(error) not in NOT_THERE:
            raise
        pool = _made(connection, host)
    if not pool.isActive():
        try:
            pool.create(libvirt.VIR_STORAGE_POOL_CREATE_WITH_BUILD)
        except libvirt.libvirtError as error:
            if not pool.isActive():  # another process of ours may have been faster
                raise _unstartable(host.pool, error) from error
    path = ET.fromstring(pool.XMLDesc()).findtext("target/path")  # noqa: S314 - libvirt's own
    if not path:
        raise Rejected(
            f"pool {host.pool} of host {host.name} is no directory; name one that is",
            reason="PoolUnusable",
            again=POOL_AGAIN,
        )
    return Pool(connection, host.pool, path, int(pool.info()[1]) // MIB)


def class_pool(connection: libvirt.virConnect, name: str) -> "Pool":
    """Return the pool of a storage class, started if need be; it is its owner's to make."""
    try:
        pool = connection.storagePoolLookupByName(name)
    except libvirt.libvirtError as error:
        if code_of(error) not in NOT_THERE:
            raise
        raise Rejected(
            f"there is no storage pool {name}, which spec.libvirt.storageClasses of the Host "
            "names, or named when a volume was made: make it with virsh pool-define",
            reason=MISSING,
            again=POOL_AGAIN,
        ) from error
    if not pool.isActive():
        try:
            pool.create()
        except libvirt.libvirtError as error:
            raise _unstartable(name, error) from error
    path = ET.fromstring(pool.XMLDesc()).findtext("target/path")  # noqa: S314 - libvirt's own
    return Pool(connection, name, path or "", int(pool.info()[1]) // MIB)


def _unstartable(name: str, error: libvirt.libvirtError) -> Rejected:
    message = f"storage pool {name} cannot be started: {sentence(error)}"
    return Rejected(message, reason="PoolUnusable", again=POOL_AGAIN)


def _made(connection: libvirt.virConnect, host: LibvirtHost) -> libvirt.virStoragePool:
    path = host.own_pool_path
    if path is None:
        raise Rejected(
            f"host {host.name} has no storage pool {host.pool}; make one, or say in "
            "spec.libvirt.storagePath where it is to be made",
            reason=MISSING,
            again=POOL_AGAIN,
        )
    pool = ET.Element("pool", type="dir")
    ET.SubElement(pool, "name").text = host.pool
    ET.SubElement(ET.SubElement(pool, "target"), "path").text = path
    try:
        made = connection.storagePoolDefineXML(ET.tostring(pool, encoding="unicode"))
        made.setAutostart(1)
    except libvirt.libvirtError:
        # Another process of ours may have been faster.
        return connection.storagePoolLookupByName(host.pool)
    return made


def storage_of(connection: libvirt.virConnect) -> tuple[StorageFacts, ...]:
    """Return how much room there is in every pool that is started, ours or not."""

    def found() -> Iterator[StorageFacts]:
        for pool in connection.listAllStoragePools(libvirt.VIR_CONNECT_LIST_STORAGE_POOLS_ACTIVE):
            with suppress(libvirt.libvirtError):  # it refuses while a volume is being filled
                pool.refresh()
            with suppress(libvirt.libvirtError):  # stopped since it was listed
                _, capacity, _, available = pool.info()
                yield StorageFacts(pool.name(), capacity // MIB, available // MIB)

    return tuple(sorted(found(), key=lambda place: place.name))


@dataclass(frozen=True, slots=True)
class Pool:
    """Volumes in one directory of a host; ``handles`` are the pools that its connection knows."""

    connection: libvirt.virConnect
    name: str
    path: str
    capacity_mib: int
    handles: dict[str, libvirt.virStoragePool] = field(default_factory=dict, compare=False)

    @property
    def pool(self) -> libvirt.virStoragePool:
        """What libvirt knows it by on this connection; many a look at a machine needs none."""
        handle = self.handles.get(self.name)
        if handle is None:
            handle = self.connection.storagePoolLookupByName(self.name)
            self.handles[self.name] = handle
        return handle

    def over(self, link: Link) -> "Pool":
        """Return the same pool for use by another connection."""
        return replace(self, connection=link.connection, handles=link.pools)

    def names(self) -> frozenset[str]:
        """Return the names of all volumes that libvirt knows of."""
        # Not listVolumes, which asks how many there are and then for so many names: while another
        # volume is made, it leaves out any of them.
        return frozenset(volume.name() for volume in self.pool.listAllVolumes())

    def find(self, name: str) -> libvirt.virStorageVol | None:
        """Return a volume, or None when there is none of this name."""
        try:
            return self.pool.storageVolLookupByName(name)
        except libvirt.libvirtError as error:
            # Not where the pool is gone, which says nothing of what is in it.
            if code_of(error) == libvirt.VIR_ERR_NO_STORAGE_VOL:
                return None
            raise

    def is_there(self, name: str) -> bool:
        """Say whether a file is there now: another host may have removed it behind libvirt."""
        try:
            self.pool.storageVolLookupByName(name).info()
        except libvirt.libvirtError as error:
            if code_of(error) == libvirt.VIR_ERR_NO_STORAGE_VOL or NO_FILE.search(sentence(error)):
                return False
            raise
        return True

    def refresh(self) -> None:
        """Have libvirt look at what is in the directory."""
        self.pool.refresh()

    def room(self) -> tuple[int, int]:
        """Return how many MiB the pool has, and how many of them are free."""
        _, capacity, _, available = self.pool.info()
        return capacity // MIB, available // MIB

    def make(self, name: str, size_mib: int, kind: str) -> None:
        """Make an empty volume; one of this name that exists is left as it is."""
        self._create(_volume(name, size_mib * MIB, kind))

    def overlay(self, name: str, size_mib: int, base: str, kind: str) -> bool:
        """Make a qcow2 volume on top of another; say no where one of this name is there already."""
        path = escape(f"{self.path}/{base}")
        backing = f'<backingStore><path>{path}</path><format type="{kind}"/></backingStore>'
        return self._create(_volume(name, size_mib * MIB, "qcow2", backing)) is not None

    def empty(self, name: str, size: int, kind: str) -> None:
        """Make a volume with nothing in it; one of this name that exists is left as it is."""
        self._create(_volume(name, size, kind))

    def fill(self, name: str, length: int, chunks: Iterable[bytes]) -> None:
        """Make a volume with these bytes, or write them over one of this name.

        Two that fill one volume with the same bytes at once do each other no harm.
        """
        volume = self._create(_volume(name, length, "raw"))
        if not length and not chunks:
            return
        try:
            self._write(volume or self.pool.storageVolLookupByName(name), chunks)
        except BaseException as error:
            # What somebody else made, or writes at this moment, may be filled by now.
            if volume is not None and not _is_in_use(error):
                self.remove(name)
            raise

    def go_on(
        self, name: str, start: int, chunks: Iterator[bytes], stored: Callable[[int], None]
    ) -> None:
        """Write these bytes into a volume from there on, and tell how far they are stored for good.

        A stream that breaks off may lose what was sent last, so it is ended every now and then.
        """
        volume, at = self.pool.storageVolLookupByName(name), start
        waiting = next(chunks, None)
        while waiting is not None:
            stream, begun = self._upload(volume, at), at
            try:
                while waiting is not None and at - begun < PART_BYTES:
                    _send(stream, waiting)
                    at += len(waiting)
                    waiting = next(chunks, None)
                stream.finish()
            except DriverError:
                stream.finish()  # only the source failed: what came is as good as any
                stored(at)
                raise
            except BaseException:
                _abort(stream)
                raise
            stored(at)

    def parts(self, name: str, length: int) -> Iterator[bytes]:
        """Return the first so many bytes of a volume, piece by piece."""
        volume = self.pool.storageVolLookupByName(name)
        for start in range(0, length, READ_BYTES):
            yield read_volume(volume, start, min(READ_BYTES, length - start))

    def make_new(self, name: str) -> bool:
        """Make a volume of which only the name matters; say whether nobody else did before."""
        return self._create(_volume(name, 0, "raw")) is not None

    def touch(self, name: str) -> None:
        """Write over the first byte of a volume, so that its time is now, if that can be done."""
        with suppress(libvirt.libvirtError):  # another process may be doing the same
            self.write_over(name, b"\n")

    def write_over(self, name: str, content: bytes) -> None:
        """Write over the beginning of a volume; the rest of it stays."""
        self._write(self.pool.storageVolLookupByName(name), [content])

    def _write(
        self, volume: libvirt.virStorageVol, chunks: Iterable[bytes], start: int = 0
    ) -> None:
        stream = self._upload(volume, start)
        try:
            for chunk in chunks:
                _send(stream, chunk)
            stream.finish()
        except BaseException:
            _abort(stream)
            raise

    def _upload(self, volume: libvirt.virStorageVol, start: int = 0) -> libvirt.virStream:
        """Open a volume for writing; only one at a time may, so whoever else does is waited for."""
        deadline = time.monotonic() + OTHERS_WRITE_SECONDS
        while True:
            stream = self.connection.newStream()
            try:
                volume.upload(stream, start, 0)
            except libvirt.libvirtError as error:
                _abort(stream)
                if not _is_in_use(error) or time.monotonic() > deadline:
                    raise
                time.sleep(LOOK_SECONDS)
            else:
                return stream

    def length(self, name: str) -> int:
        """Return how many bytes a volume has; none when there is no such volume."""
        volume = self.find(name)
        return int(volume.info()[1]) if volume else 0

    def read(self, name: str, start: int = 0, length: int = 0) -> bytes:
        """Return so many bytes of a volume from there on, or all; nothing when there is none."""
        volume = self.find(name)
        if volume is None:
            return b""
        return read_volume(volume, start, length)

    def grow(self, name: str, size_mib: int) -> None:
        """Make a volume larger; one that is large enough stays."""
        volume = self.pool.storageVolLookupByName(name)
        if volume.info()[1] < size_mib * MIB:
            volume.resize(size_mib * MIB)

    def extend(self, name: str, size: int) -> None:
        """Have a file end where its last byte is written, whatever it is taken for."""
        self._write(self.pool.storageVolLookupByName(name), [b"\0"], size - 1)

    def remove(self, name: str) -> None:
        """Remove a volume; one that is not there is none."""
        volume = self.find(name)
        if volume is None:
            return
        try:
            volume.delete()
        except libvirt.libvirtError as error:
            if code_of(error) not in NOT_THERE:
                raise

    def remove_all(self, prefix: str, *, except_for: frozenset[str] = frozenset()) -> None:
        """Remove every volume whose name begins like this, also those libvirt did not make.

        It does not look for the latter while it makes a volume. Where all is to go, what it did
        not see would stay for ever, so that it has to be asked once more.
        """
        patience = 0.0 if except_for else OTHERS_MAKE_SECONDS
        unseen = self._look_through(patience)
        for name in sorted(self.names() - except_for):
            if name.startswith(prefix):
                self.remove(name)
        if unseen is not None and not except_for:
            raise Busy(f"another volume is being made: {sentence(unseen)}") from unseen

    def _look_through(self, seconds: float) -> libvirt.libvirtError | None:
        """Have libvirt look at what is in the directory, or return why it would not for so long."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                self.refresh()
            except libvirt.libvirtError as error:
                if time.monotonic() > deadline:
                    return error
                time.sleep(LOOK_SECONDS)
            else:
                return None

    def _create(self, volume: str) -> libvirt.virStorageVol | None:
        """Make a volume and return it, or None when there is one of this name."""
        try:
            return self.pool.createXML(volume)
        except libvirt.libvirtError as error:
            if code_of(error) != libvirt.VIR_ERR_STORAGE_VOL_EXIST:
                raise
            return None


def _is_in_use(error: BaseException) -> bool:
    """Say whether a volume was refused because somebody else writes it."""
    in_use = libvirt.VIR_ERR_OPERATION_INVALID
    return isinstance(error, libvirt.libvirtError) and code_of(error) == in_use


def read_volume(volume: libvirt.virStorageVol, start: int = 0, length: int = 0) -> bytes:
    """Return so many bytes of a volume from there on, or those that there are; or all of them."""
    stream = volume.connect().newStream()
    parts: list[bytes] = []
    try:
        volume.download(stream, start, length)
        while part := stream.recv(CHUNK):
            parts.append(part)
        stream.finish()
    except BaseException:
        _abort(stream)
        raise
    return b"".join(parts)


def _volume(name: str, capacity: int, kind: str, backing: str = "") -> str:
    """Return how a volume is asked for; as text, because every machine has several."""
    allocation = "<allocation>0</allocation>" if kind == "raw" else ""
    # libvirt's usual form is one that cannot grow once it has snapshots.
    compat = "<compat>1.1</compat>" if kind == "qcow2" else ""
    return (
        f"<volume><name>{escape(name)}</name><capacity>{capacity}</capacity>{allocation}"
        f'<target><format type="{kind}"/>{compat}<permissions><mode>0600</mode></permissions>'
        f"</target>{backing}</volume>"
    )


def _send(stream: libvirt.virStream, chunk: bytes) -> None:
    view = memoryview(chunk)
    while view:
        sent = stream.send(bytes(view[:CHUNK]))
        if sent < 0:
            raise OSError("the stream would block, though it is a blocking one")
        view = view[sent:]


def _abort(stream: libvirt.virStream) -> None:
    with suppress(libvirt.libvirtError):  # it has failed already, which is why we are here
        stream.abort()
