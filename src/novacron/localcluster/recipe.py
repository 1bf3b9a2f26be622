"""What to build from the Go module proxy: a module of ours that pins sources, and its programs."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Recipe"]


@dataclass(frozen=True, slots=True)
class Recipe:
    """Programs that are built together from one module; each is called as its package ends.

    ``stamps`` are variables that programs tell their version from.
    """

    title: str
    version: str
    module: Path
    packages: tuple[str, ...]
    stamps: tuple[str, ...] = ()

    @property
    def programs(self) -> tuple[str, ...]:
        """Return the names of the programs."""
        return tuple(package.rpartition("/")[2] for package in self.packages)

    def directory(self, cache: Path) -> Path:
        """Return where the cache keeps the programs that these sources make."""
        sources = [self.module / "go.sum", *sorted(self.module.glob("*/*.go"))]
        digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
        return cache / f"{self.title.lower()}-v{self.version}-{digest[:12]}"

    def missing(self, directory: Path) -> list[str]:
        """Return which programs are not there."""
        return [name for name in self.programs if not os.access(directory / name, os.X_OK)]

    def modules(self) -> int:
        """Return how many modules there are to download at most."""
        sums = (self.module / "go.sum").read_text().splitlines()
        return sum(1 for line in sums if "/go.mod " not in line)

    def link_flags(self) -> str:
        """Return what the linker is told: no symbols, and what is stamped into the programs."""
        return " ".join(["-s", "-w", *(f"-X {stamp}" for stamp in self.stamps)])
