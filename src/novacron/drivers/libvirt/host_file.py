"""Reads a file that the host has, or mounts by NFS, through libvirt: no path of this machine.

libvirt knows files as volumes of a pool, so the file's directory is made a pool for the moment.
Such pools are never defined, only started; what a killed process left is taken by the next one
that wants the same directory, and swept with the rest.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from xml.etree import ElementTree as ET

import libvirt

from novacron.core.errors import Rejected
from novacron.drivers.libvirt.errors import NOT_THERE, code_of, sentence
from novacron.drivers.libvirt.pool import Pool
from novacron.images import HostFile, Opened

__all__ = ["HostFileBytes", "close_source", "open_sources", "source_pool"]

PREFIX = "novacron-source-"
AGAIN = timedelta(seconds=20)


@dataclass(frozen=True, slots=True)
class HostFileBytes:
    """A file of the host as the bytes of an image."""

    pool: Pool
    file: HostFile

    @property
    def shown(self) -> str:
        """Return how it was asked for."""
        return self.file.shown

    @property
    def identity(self) -> str:
        """Return where it is."""
        return f"{self.file.server or ''}:{self.file.directory}/{self.file.name}"

    @contextmanager
    def open(self, start: int = 0, validator: str = "") -> Iterator[Opened]:  # noqa: ARG002
        """Read the file from there on."""
        with self._directory() as directory:
            volume = self._volume(directory)
            described = ET.fromstring(volume.XMLDesc())  # noqa: S314 - libvirt's own
            length = int(described.findtext("physical") or described.findtext("capacity") or 0)
            changed = described.findtext("target/timestamps/mtime") or ""
            stream = self.pool.connection.newStream()
            volume.download(stream, start, 0)
            try:
                yield Opened(_Received(stream), start, length, f"{length} {changed}", changed)
            finally:
                with suppress(libvirt.libvirtError):
                    stream.abort()

    def _volume(self, directory: libvirt.virStoragePool) -> libvirt.virStorageVol:
        try:
            return directory.storageVolLookupByName(self.file.name)
        except libvirt.libvirtError as error:
            if code_of(error) in NOT_THERE:
                raise self._missing(f"there is no file {self.file.name} in it") from error
            raise

    @contextmanager
    def _directory(self) -> Iterator[libvirt.virStoragePool]:
        connection, name = self.pool.connection, _pool_name(self.file)
        if self.file.server is None and (own := _pool_at(connection, self.file.directory)):
            with suppress(libvirt.libvirtError):  # it refuses while a volume is being filled
                own.refresh()
            if own.name() != name:
                yield own
                return
        with suppress(libvirt.libvirtError):  # what somebody left who was killed
            connection.storagePoolLookupByName(name).destroy()
        try:
            flags = libvirt.VIR_STORAGE_POOL_CREATE_WITH_BUILD if self.file.server else 0
            made = connection.storagePoolCreateXML(source_pool(self.file, self.pool.path), flags)
        except libvirt.libvirtError as error:
            raise self._missing(sentence(error)) from error
        try:
            yield made
        finally:
            with suppress(libvirt.libvirtError):
                made.destroy()

    def _missing(self, why: str) -> Rejected:
        place = f"{self.file.server}:" if self.file.server else ""
        return Rejected(
            f"image {self.file.shown}: the host cannot read {place}{self.file.directory}: {why}",
            reason="ImageNotFound",
            again=AGAIN,
        )


@dataclass(frozen=True, slots=True)
class _Received:
    stream: libvirt.virStream

    def read(self, size: int, /) -> bytes:
        """Return what comes next."""
        data: bytes = self.stream.recv(size)
        return data


def source_pool(file: HostFile, beside: str) -> str:
    """Return the definition of a pool over a file's directory."""
    pool = ET.Element("pool", type="netfs" if file.server else "dir")
    ET.SubElement(pool, "name").text = _pool_name(file)
    path = file.directory
    if file.server:
        source = ET.SubElement(pool, "source")
        ET.SubElement(source, "host", name=file.server)
        ET.SubElement(source, "dir", path=file.directory)
        ET.SubElement(source, "format", type="nfs")
        path = f"{beside.rstrip('/')}-{_pool_name(file).removeprefix('novacron-')}"
    ET.SubElement(ET.SubElement(pool, "target"), "path").text = path
    return ET.tostring(pool, encoding="unicode")


def open_sources(connection: libvirt.virConnect) -> list[str]:
    """Return the directories that are open, perhaps since somebody was killed."""
    flag = libvirt.VIR_CONNECT_LIST_STORAGE_POOLS_TRANSIENT
    names = [pool.name() for pool in connection.listAllStoragePools(flag)]
    return [name for name in names if name.startswith(PREFIX)]


def close_source(connection: libvirt.virConnect, name: str) -> None:
    """Close a directory; what is being read from it stays open."""
    with suppress(libvirt.libvirtError):
        connection.storagePoolLookupByName(name).destroy()


def _pool_name(file: HostFile) -> str:
    place = f"{file.server or ''}:{file.directory}"
    return f"{PREFIX}{hashlib.sha256(place.encode()).hexdigest()[:12]}"


def _pool_at(connection: libvirt.virConnect, path: str) -> libvirt.virStoragePool | None:
    try:
        found = connection.storagePoolLookupByTargetPath(path)
    except libvirt.libvirtError as error:
        if code_of(error) in NOT_THERE:
            return None
        raise
    return found if found.isActive() else None
