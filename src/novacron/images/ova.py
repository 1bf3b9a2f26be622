"""Finds the files in an ova, without believing how large it says that its headers are.

The archive is anybody's and read by this very process. What is said of a file beyond its name and
size can be as long as the archive and lies one within the other, so no more of it is read than
honest archives have.
"""

import tarfile
from typing import IO, cast

__all__ = ["files_in"]

MOST_MEMBERS = 64
HEADER_BYTES = 8 * 1024
HEADERS_BYTES = 64 * 1024


class _Headers:
    """A file of which only so much is read at once, and in all."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._left = HEADERS_BYTES
        self.seek, self.tell = file.seek, file.tell

    def read(self, size: int) -> bytes:
        self._left -= size
        if not 0 <= size <= HEADER_BYTES or self._left < 0:
            raise ValueError("its headers are larger than headers are")
        return self._file.read(size)


def files_in(archive: IO[bytes], length: int) -> list[tarfile.TarInfo]:
    """Return the first files of an archive of so many bytes, which lie in it as they are.

    Raises ValueError, OSError or an error of tarfile when it is damaged.
    """
    archive.seek(0)
    # Names are told to users, so what is no text in them is replaced.
    read = cast("IO[bytes]", _Headers(archive))
    with tarfile.open(fileobj=read, mode="r:", errors="replace") as tar:
        members = [member for member, _ in zip(tar, range(MOST_MEMBERS), strict=False)]
    for member in members:
        if not 0 <= member.size <= length - member.offset_data or member.issparse():
            raise ValueError(f"{member.name[:100]} does not lie in it as a whole")
    return [member for member in members if member.isreg()]
