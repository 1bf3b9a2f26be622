"""Images that are only partly on a host, with a record of how far they are for whoever goes on.

The record is the beginning of the claim: a volume that grows for as long as somebody lives, though
only its end is written then. Only one may go on with what another left: whoever makes a volume that
nobody made before. Blocks.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass

import libvirt

from novacron.core.errors import Busy
from novacron.drivers.libvirt.pool import Pool
from novacron.drivers.libvirt.shelf import claim, taken

__all__ = ["BEAT_BYTES", "Partial", "Record", "read_record", "take_over"]

# A block of most file systems, so that what grows takes up more room too.
BEAT_BYTES = 4096
# More than a server tells of a version that anybody could go on with.
RECORD_BYTES = 16 * BEAT_BYTES
END = b"\n"


@dataclass(frozen=True, slots=True)
class Record:
    """How far an image is: ``stored`` bytes of what had this version and length.

    ``left`` says that whoever brought it gave up for now, so that nobody need wait for him.
    """

    volume: str
    version: str
    length: int
    stored: int = 0
    left: bool = False

    def write(self, pool: Pool, stem: str, beats: int) -> None:
        """Write it into the claim, which is made larger each time."""
        text = json.dumps(asdict(self)).encode() + END
        text = text.ljust(BEAT_BYTES, b"\0")
        pool.fill(claim(stem), 0, [text])
        pool.extend(claim(stem), len(text) + BEAT_BYTES * beats)


@dataclass(frozen=True, slots=True)
class Partial:
    """What somebody left, and who goes on with it now."""

    stem: str
    record: Record
    beats: int


def read_record(pool: Pool, stem: str) -> Record | None:
    """Return how far an image is that is being brought, or was left; None where nobody can tell."""
    try:
        text, found, _ = pool.read(claim(stem), length=RECORD_BYTES).partition(END)
        record = Record(**json.loads(text)) if found else None
    except (TypeError, ValueError, libvirt.libvirtError):
        return None  # it is being written this moment
    return record if record is not None and pool.find(record.volume) else None


def take_over(pool: Pool, stem: str, names: Iterable[str]) -> Partial:
    """Become the one who goes on with what was left; Busy where somebody else just did."""
    times = sum(name.startswith(taken(stem, "")) for name in names)
    record = read_record(pool, stem)
    if record is None or not pool.make_new(taken(stem, str(times))):
        raise Busy("somebody else goes on with the image", reason="ImageIncomplete")
    return Partial(stem, record, pool.length(claim(stem)) // BEAT_BYTES)
