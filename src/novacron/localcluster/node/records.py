"""What is remembered on disk of pods and containers, so that a new agent finds them again.

A container's files are written by its keeper alone, a pod's by the agent. Standard library
only: keepers and ``novacron down`` import it.
"""

import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from novacron.localcluster.identity import Identity
from novacron.workplace.files import private_directory, write_private

__all__ = ["ContainerRecord", "Exit", "PodRecord", "Start", "now", "pod_records"]

LOST = 137


def now() -> str:
    """Return the time as Kubernetes writes it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


@dataclass(frozen=True, slots=True)
class Start:
    """A run that began: the keeper, and the container's own process as the machine counts it."""

    attempt: int
    at: str
    keeper: Identity
    process: Identity


@dataclass(frozen=True, slots=True)
class Exit:
    """How a run ended. ``reason`` is set only when the program could not be run at all."""

    code: int
    since: str
    until: str
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class ContainerRecord:
    """The directory of one container of one pod."""

    directory: Path

    @property
    def lock(self) -> Path:
        """Return the file that a keeper holds as long as it lives."""
        return self.directory / "lock"

    def message(self, attempt: int) -> Path:
        """Return the file in which a run may say why it ended."""
        return self.directory / f"{attempt}.message"

    def log(self, attempt: int) -> Path:
        """Return where the output of a run is."""
        return self.directory / f"{attempt}.log"

    def prepare(self) -> None:
        """Make the directory."""
        private_directory(self.directory)

    def started(self, start: Start) -> None:
        """Remember that a run began."""
        write_private(self.directory / "start.json", json.dumps(asdict(start)))

    def ended(self, attempt: int, how: Exit) -> None:
        """Remember how a run ended."""
        write_private(self._exit(attempt), json.dumps(asdict(how)))

    def start(self) -> Start | None:
        """Return the latest run."""
        known = _read(self.directory / "start.json")
        try:
            keeper, process = Identity(**known.pop("keeper")), Identity(**known.pop("process"))
            return Start(keeper=keeper, process=process, **known)
        except (KeyError, TypeError):
            return None

    def interrupt(self) -> None:
        """Remember that the run does not end by itself: the node goes down."""
        start = self.start()
        if start and start.keeper.alive():
            write_private(self.directory / f"{start.attempt}.interrupted", "")

    def survived(self, attempt: int) -> None:
        """Remember that a run goes on, although the node went down."""
        (self.directory / f"{attempt}.interrupted").unlink(missing_ok=True)

    def was_interrupted(self, attempt: int) -> bool:
        """Say whether a run was ended because the node went down."""
        return (self.directory / f"{attempt}.interrupted").exists()

    def exit(self, attempt: int) -> Exit:
        """Return how a run ended that runs no more."""
        try:
            return Exit(**_read(self._exit(attempt)))
        except TypeError:
            lost = Exit(LOST, now(), now(), "Error", "its keeper was killed")
            self.ended(attempt, lost)
            return lost

    def forget(self, attempt: int) -> None:
        """Remove what is left of a run."""
        for path in self.directory.glob(f"{attempt}.*"):
            path.unlink(missing_ok=True)

    def _exit(self, attempt: int) -> Path:
        return self.directory / f"{attempt}.exit.json"


@dataclass(frozen=True, slots=True)
class PodRecord:
    """The directory of one pod."""

    directory: Path
    namespace: str
    name: str
    address: str = ""

    @property
    def uid(self) -> str:
        """Return the pod's own name for ever."""
        return self.directory.name

    @property
    def volumes(self) -> Path:
        """Return where its volumes are."""
        return self.directory / "volumes"

    @classmethod
    def read(cls, directory: Path) -> "PodRecord | None":
        """Return what is remembered of a pod."""
        try:
            return cls(directory, **_read(directory / "pod.json"))
        except TypeError:
            return None

    def write(self) -> "PodRecord":
        """Remember it."""
        content = {**asdict(self)}
        del content["directory"]
        write_private(self.directory / "pod.json", json.dumps(content))
        return self

    def container(self, name: str) -> ContainerRecord:
        """Return the record of one of its containers."""
        return ContainerRecord(self.directory / "containers" / name)

    def containers(self) -> Iterator[ContainerRecord]:
        """Return the records of its containers."""
        for directory in sorted((self.directory / "containers").glob("*")):
            yield ContainerRecord(directory)

    def remove(self) -> None:
        """Forget the pod and all its files."""
        shutil.rmtree(self.directory, ignore_errors=True)


def pod_records(directory: Path) -> Iterator[PodRecord]:
    """Return every pod that a node's directory remembers."""
    for place in sorted((directory / "pods").glob("*")):
        # A crash may have torn the file; the containers are there all the same.
        yield PodRecord.read(place) or PodRecord(place, "", "")


def _read(path: Path) -> dict[str, Any]:
    try:
        known = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}
