"""What is said of an image beside its address, of install media, and how far their import is."""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["NO_MEDIA", "Import", "ImportState", "Media", "Medium", "PullPolicy"]


class PullPolicy(StrEnum):
    """When the source of an image is asked, though the host may have it already.

    ``ALWAYS`` asks for every new machine whether the image is still the same, and fetches it only
    if it is not. ``IF_NOT_PRESENT`` takes what the host has from this source. ``NEVER`` takes
    only that.
    """

    ALWAYS = "Always"
    IF_NOT_PRESENT = "IfNotPresent"
    NEVER = "Never"


@dataclass(frozen=True, slots=True)
class Medium:
    """An image or an install medium, by where it comes from."""

    source: str
    checksum: str | None = None
    credentials: str | None = None
    size_mib: int | None = None


@dataclass(frozen=True, slots=True)
class Media:
    """What a machine is installed from, beside its image, and who may fetch that.

    ``credentials`` names a Secret beside the machine. ``install`` is in its drive.
    """

    credentials: str | None = None
    install: Medium | None = None


NO_MEDIA = Media()


class ImportState(StrEnum):
    """How far an import is."""

    PENDING = "Pending"
    IMPORTING = "Importing"
    READY = "Ready"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class Import:
    """What a disk is being filled with, or was."""

    disk: str
    source: str
    state: ImportState
    percent: int | None = None
    message: str = ""
