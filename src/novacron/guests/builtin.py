"""The images that a ``builtin://`` source names."""

from collections.abc import Callable, Mapping
from pathlib import Path

from novacron.guests.tiny.image import tiny_image
from novacron.workplace.progress import Progress

__all__ = ["BUILTIN", "builtin"]

BUILTIN: Mapping[str, Callable[[Path, Progress], Path]] = {"tiny": tiny_image}


def builtin(name: str, cache: Path, progress: Progress) -> Path | None:
    """Return the image of that name, making it if need be; None when there is none."""
    make = BUILTIN.get(name)
    return make(cache, progress) if make else None
