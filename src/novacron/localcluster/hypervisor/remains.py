"""What is left when a daemon died without being stopped, found without its help."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from xml.etree import ElementTree as ET

from novacron.localcluster.hypervisor.launch import program
from novacron.localcluster.hypervisor.places import VIEW, Places
from novacron.localcluster.identity import PROC, Identity

__all__ = ["end_processes", "processes_of", "remove_bridges"]

GONE_WITHIN = timedelta(seconds=10)
MOST_ROUNDS = 5
INTERFACES = Path("/sys/class/net")


def processes_of(places: Places) -> list[Identity]:
    """Return every process that lives in the daemon's view or was told its directories."""
    pids = (int(entry.name) for entry in PROC.iterdir() if entry.name.isdecimal())
    found = (Identity.of(pid) for pid in pids if _belongs(PROC / str(pid), places))
    return [identity for identity in found if identity]


def end_processes(places: Places) -> bool:
    """End all of them at once; say whether there were any."""
    were_there = False
    # One may begin another while they are looked for.
    for _ in range(MOST_ROUNDS):
        if not (found := processes_of(places)):
            break
        were_there = True
        for identity in found:
            identity.signal(signal.SIGKILL)
        for identity in found:
            identity.wait(GONE_WITHIN)
    return were_there


def remove_bridges(places: Places, namespace: str | None) -> None:
    """Remove the bridges of the daemon's networks."""
    inside = ("-netns", namespace) if namespace else ()
    for bridge in _bridges(places):
        if namespace or (INTERFACES / bridge).exists():
            command = [program("ip"), *inside, "link", "delete", bridge]
            subprocess.run(command, capture_output=True, check=False)


def _belongs(process: Path, places: Places) -> bool:
    with suppress(OSError):
        if f"{places.alias}/".encode() in (process / "environ").read_bytes():
            return True
        seen = process / "root" / VIEW["run"].relative_to("/")
        return seen.samefile(places.own("run"))
    return False


def _bridges(places: Places) -> Iterator[str]:
    for path in (places.own("etc") / "qemu" / "networks").glob("*.xml"):
        with suppress(ET.ParseError, OSError):
            bridge = ET.parse(path).find("bridge")  # noqa: S314 - libvirt's own
            if bridge is not None and (name := bridge.get("name")):
                yield name
