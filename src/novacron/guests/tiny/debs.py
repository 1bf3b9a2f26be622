"""Debian packages: fetched without being installed, and unpacked into a directory.

apt runs as whoever we are. Where its lists are missing or older than the archive, it reads new
ones into our own scratch directory; the system's are never touched.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from novacron.guests.errors import ImageFailed
from novacron.guests.tiny.programs import run
from novacron.workplace.progress import Progress

__all__ = ["Debs", "unpack"]

ARCHITECTURE = "amd64"
APT_ARCHIVES = Path("/var/cache/apt/archives")
# Packages whose names begin so are followed as dependencies: we take programs, not systems.
FOLLOWED = ("lib", "linux-image-")


@dataclass(slots=True)
class Debs:
    """A directory of packages that fills itself from the archive.

    What apt itself keeps on this machine is used as well.
    """

    directory: Path
    scratch: Path
    progress: Progress
    kept: Path = APT_ARCHIVES
    _own_lists: bool = field(default=False, init=False)

    def closure(self, names: Iterable[str]) -> list[Path]:
        """Return the packages and the libraries they depend on, fetching those not here."""
        self.directory.mkdir(parents=True, exist_ok=True)
        found: dict[str, Path] = {}
        wanted = set(names)
        while wanted:
            self._fetch(sorted(name for name in wanted if not self._here(name)))
            here = {name: self._here(name) for name in wanted}
            found |= {name: path for name, path in here.items() if path}
            needed = {name for path in here.values() if path for name in _dependencies(path)}
            wanted = needed - found.keys()
        return [found[name] for name in sorted(found)]

    def _here(self, name: str) -> Path | None:
        """Return the newest file of a package, by its time: versions have an order of their own."""
        for place in (self.directory, self.kept):
            files = [*place.glob(f"{name}_*_{ARCHITECTURE}.deb"), *place.glob(f"{name}_*_all.deb")]
            if files:
                return max(files, key=lambda path: path.stat().st_mtime)
        return None

    def _fetch(self, names: Sequence[str]) -> None:
        if not names:
            return
        self.progress.say(f"fetching {', '.join(names)}")
        try:
            self._download(names)
        except ImageFailed:
            if self._own_lists:
                raise
            self._update()
            self._download(names)

    def _download(self, names: Sequence[str]) -> None:
        qualified = [f"{name}:{ARCHITECTURE}" for name in names]
        try:
            run(["apt-get", *self._options(), "download", *qualified], directory=self.directory)
        except ImageFailed as error:
            raise ImageFailed(
                f"could not fetch packages ({error}); check the network, or take a directory of "
                f"packages along: `python -m novacron.guests tiny --debs DIR` fills and uses one"
            ) from error

    def _update(self) -> None:
        self.progress.say("reading what the package archive has")
        self._own_lists = True
        for name in ("lists/partial", "archives/partial"):
            (self.scratch / name).mkdir(parents=True, exist_ok=True)
        run(["apt-get", *self._options(), "update"])

    def _options(self) -> list[str]:
        # Not as apt's own user, who may not write into our directories.
        options = {"APT::Sandbox::User": "", "Acquire::Retries": "3"}
        if self._own_lists:
            options["Dir::State::lists"] = f"{self.scratch}/lists"
            options["Dir::Cache"] = str(self.scratch)
        return [f"-o{name}={value}" for name, value in options.items()]


def unpack(packages: Iterable[Path], system: Path) -> None:
    """Unpack packages into one directory."""
    system.mkdir(parents=True, exist_ok=True)
    for package in packages:
        run(["dpkg-deb", "--extract", package, system])


def _dependencies(package: Path) -> list[str]:
    """Return the packages it needs, of alternatives the first."""
    told = run(["dpkg-deb", "--show", "--showformat=${Depends}, ${Pre-Depends}", package])
    names = (re.split(r"[ :|(]", clause.strip())[0] for clause in told.split(","))
    return [name for name in names if name.startswith(FOLLOWED)]
