"""The volumes of one pod as directories of this machine, kept as what they show changes."""

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from novacron.localcluster.node.environment import Unmet
from novacron.localcluster.node.order import Mount
from novacron.localcluster.node.payload import Payload
from novacron.localcluster.node.published import publish
from novacron.runtime.resource import Object
from novacron.workplace.files import private_directory

__all__ = ["Volumes"]

PUBLISHED = ("secret", "configMap", "downwardAPI", "projected")
HOST_CHECKS: Mapping[str, Callable[[int], bool]] = {
    "Directory": stat.S_ISDIR,
    "File": stat.S_ISREG,
    "Socket": stat.S_ISSOCK,
    "CharDevice": stat.S_ISCHR,
    "BlockDevice": stat.S_ISBLK,
}


@dataclass(slots=True)
class Volumes:
    """Everything that a pod's containers can mount."""

    directory: Path
    pod: Object

    def refresh(self, payload: Payload) -> None:
        """Bring every volume to what it should show; Unmet when something is not there yet."""
        private_directory(self.directory)
        for volume in self._all():
            if any(kind in volume for kind in PUBLISHED):
                publish(self._place(volume), payload.of(volume), self._group)
            elif "hostPath" in volume:
                _check_host_path(volume["hostPath"])
            else:
                self._empty(volume)

    def mounts(self, container: Object) -> list[Mount]:
        """Return where a container sees the volumes."""
        volumes = {volume["name"]: volume for volume in self._all()}
        return [
            self._mount(volumes[wanted["name"]], wanted)
            for wanted in container.get("volumeMounts") or ()
        ]

    def _mount(self, volume: Object, wanted: Object) -> Mount:
        host = volume.get("hostPath")
        source = Path(host["path"]) if host else self._place(volume)
        if part := wanted.get("subPath"):
            source = self._part(source, part, writable="emptyDir" in volume)
        published = any(kind in volume for kind in PUBLISHED)
        read_only = bool(wanted.get("readOnly")) or published
        return Mount(str(source), wanted["mountPath"], read_only)

    def _part(self, source: Path, part: str, *, writable: bool) -> Path:
        place = source / part
        if writable and not place.exists():
            place.mkdir(parents=True)
            place.chmod(0o777)
        # A link could lead out of the volume.
        if not place.resolve().is_relative_to(source.resolve()):
            raise Unmet(f"subPath {part} leads out of its volume")
        return place.resolve()

    def _empty(self, volume: Object) -> None:
        # Once: what its containers make of it is theirs.
        if not self._path(volume).is_dir():
            place = self._place(volume)
            if self._group is not None:
                os.chown(place, -1, self._group)
            place.chmod(0o777 if self._group is None else 0o2777)

    def _place(self, volume: Object) -> Path:
        place = self._path(volume)
        if not place.is_dir():
            place.mkdir()
            place.chmod(0o755)
        return place

    def _path(self, volume: Object) -> Path:
        return self.directory / str(volume["name"])

    def _all(self) -> Iterator[Object]:
        yield from self.pod["spec"].get("volumes") or ()

    @property
    def _group(self) -> int | None:
        context = self.pod["spec"].get("securityContext") or {}
        group: int | None = context.get("fsGroup")
        return group


def _check_host_path(wanted: Object) -> None:
    path, kind = Path(wanted["path"]), wanted.get("type") or ""
    if kind == "DirectoryOrCreate":
        path.mkdir(parents=True, exist_ok=True)
    elif kind == "FileOrCreate" and not path.exists():
        path.touch()
    if not path.exists():
        raise Unmet(f"hostPath {path} does not exist on this machine")
    check = HOST_CHECKS.get(kind)
    if check and not check(path.stat().st_mode):
        raise Unmet(f"hostPath {path} is no {kind}")
