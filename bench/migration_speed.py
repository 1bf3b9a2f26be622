"""Live migration: how long from asking us until it is written down as done, beside virsh.

Two hosts of one machine share a directory with the disks. Both migrate guests of the same image
and memory, with the same flags and the same limit on bandwidth, in turn and in both directions.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import libvirt

from bench.cluster import Cluster, throwaway_cluster
from bench.libvirt_speed import WithImages
from bench.machines import API_VERSION, NAMESPACE
from bench.report import at_most, conclude, show_table
from novacron.guests.builtin import builtin
from novacron.localcluster.hypervisor import Fleet
from novacron.workplace.home import Home
from novacron.workplace.progress import Silent

__all__ = ["main", "measure_migration"]

ROUNDS = 6
POOL = "shared"
NAME = "traveller"
TWIN = "twin"
BOOT_S = 20
BANDWIDTH_MIB = 25
FLAGS = (
    *("--live", "--p2p", "--persistent", "--undefinesource", "--abort-on-error", "--unsafe"),
    *("--auto-converge", "--compressed", "--comp-methods", "xbzrle"),
    *("--bandwidth", str(BANDWIDTH_MIB)),
)


@dataclass(frozen=True, slots=True)
class Ground:
    """Two hosts, one machine of ours and one that only virsh knows."""

    cluster: Cluster
    fleet: Fleet

    def ours(self, to: int) -> float:
        """Ask for our machine to be moved; return how long it takes until that is written down."""
        kubectl = self.cluster.plane.kubectl
        begun = time.monotonic()
        note = f"novacron.io/migrate-to=real-{to}"
        kubectl("annotate", f"vm.novacron.io/{NAME}", "-n", NAMESPACE, note)
        there = "jsonpath={.status.nodeName}=" + f"real-{to}"
        kubectl(
            *("wait", f"vm.novacron.io/{NAME}", "-n", NAMESPACE, f"--for={there}"),
            "--timeout=120s",
        )
        return time.monotonic() - begun

    def virsh(self, to: int) -> float:
        """Have virsh move its own."""
        here = self.fleet.hosts[2 - to].uri
        begun = time.monotonic()
        command = ["virsh", "-q", "-c", here, "migrate", *FLAGS, TWIN, self.fleet.peer_uri(to)]
        subprocess.run(command, check=True)
        return time.monotonic() - begun


def measure_migration(rounds: int = ROUNDS) -> bool:
    """Measure both, print and keep the figures, and say whether the bar is held."""
    pairs: list[tuple[float, float]] = []
    with ground() as both:
        for number in range(rounds):
            to = 2 - number % 2
            pairs.append((both.virsh(to), both.ours(to)))
    virsh, ours = (statistics.median(column) for column in zip(*pairs, strict=True))
    rows = [(f"round {n}", f"{v:.2f}", f"{o:.2f}") for n, (v, o) in enumerate(pairs, 1)]
    rows.append(("median", f"{virsh:.2f}", f"{ours:.2f} ({ours / virsh:.2f}x)"))
    show_table("seconds of a live migration", ("", "virsh migrate", "asked of us"), rows)
    bars = [at_most("total time, times that of virsh migrate", ours / virsh, 1.15)]
    return conclude("migration", {"seconds": pairs}, bars)


@contextmanager
def ground() -> Iterator[Ground]:
    """Start hosts, a control plane and our operator; nothing of them is left afterwards."""
    with tempfile.TemporaryDirectory(prefix="nova-bench-") as scratch:
        fleet = Fleet(Path(scratch) / "fleet", 2)
        fleet.start()
        try:
            images = Path(scratch) / "images"
            images.mkdir()
            tiny = builtin("tiny", Home.default().cache, Silent())
            assert tiny is not None
            (images / "tiny.qcow2").symlink_to(tiny)
            with (
                throwaway_cluster(simulated_hosts=0) as cluster,
                cluster.running(WithImages(images)),
            ):
                _declare(cluster, fleet)
                _make_twin(fleet)
                time.sleep(BOOT_S)  # both are idle then
                yield Ground(cluster, fleet)
        finally:
            fleet.stop(timedelta(0))


def _declare(cluster: Cluster, fleet: Fleet) -> None:
    cluster.create(*(_host(fleet, number) for number in (1, 2)))
    cluster.plane.kubectl(
        *("wait", "hosts.novacron.io/real-1", "hosts.novacron.io/real-2"),
        *("--for=condition=Ready", "--timeout=60s"),
    )
    cluster.plane.kubectl(
        *("patch", "hosts.novacron.io/real-2", "--type=merge", "--patch"),
        '{"spec": {"unschedulable": true}}',
    )
    cluster.create(_machine())
    ready = ("--for=condition=Ready", "--timeout=120s")
    cluster.plane.kubectl("wait", f"vm.novacron.io/{NAME}", "-n", NAMESPACE, *ready)
    cluster.plane.kubectl(
        *("patch", "hosts.novacron.io/real-2", "--type=merge", "--patch"),
        '{"spec": {"unschedulable": false}}',
    )


def _host(fleet: Fleet, number: int) -> dict[str, Any]:
    host = fleet.hosts[number - 1]
    spec: dict[str, Any] = {
        "driver": "libvirt",
        "endpoint": host.uri,
        "labels": {"bench": "real"},
        "overcommit": {"cpu": 100, "memory": 10, "disk": 10},
        "libvirt": {
            "storagePool": POOL,
            "network": host.network,
            "migration": {"uri": fleet.peer_uri(number)},
        },
    }
    return {
        "apiVersion": API_VERSION,
        "kind": "Host",
        "metadata": {"name": f"real-{number}"},
        "spec": spec,
    }


def _machine() -> dict[str, Any]:
    template = {
        "resources": {"cpu": 1, "memory": "512Mi", "disk": "256Mi"},
        "image": {"source": "builtin://tiny"},
        "nodeSelector": {"bench": "real"},
    }
    policy = {"compression": True, "bandwidth": f"{BANDWIDTH_MIB}Mi"}
    return {
        "apiVersion": API_VERSION,
        "kind": "VirtualMachine",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": {"running": True, "migrationPolicy": policy, "template": {"spec": template}},
    }


def _make_twin(fleet: Fleet) -> None:
    """Start a guest like ours on the first host, which nobody but virsh knows of."""
    connection = libvirt.open(fleet.hosts[0].uri)
    ours = connection.lookupByName(f"{NAMESPACE}.{NAME}")
    domain = ET.fromstring(ours.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE))
    pool = connection.storagePoolLookupByName(POOL)
    for tag, text in (("name", TWIN), ("uuid", str(uuid.uuid4()))):
        found = domain.find(tag)
        assert found is not None
        found.text = text
    metadata = domain.find("metadata")
    assert metadata is not None
    domain.remove(metadata)
    for source in domain.findall("devices/disk/source"):
        source.set("volume", _copied(pool, source.get("volume") or ""))
    for log in domain.iter("log"):
        log.set("file", (log.get("file") or "").replace("console", "console-twin"))
    connection.defineXML(ET.tostring(domain, encoding="unicode")).create()
    connection.close()
    other = libvirt.open(fleet.hosts[1].uri)
    other.storagePoolLookupByName(POOL).refresh()  # a daemon knows only what it has seen
    other.close()


def _copied(pool: libvirt.virStoragePool, name: str) -> str:
    """Make a volume like another, with nothing in it but what is beneath it."""
    volume = ET.fromstring(pool.storageVolLookupByName(name).XMLDesc())
    found = volume.find("name")
    assert found is not None
    found.text = f"twin-{name}"
    for tag in ("key", "allocation", "physical"):
        if (old := volume.find(tag)) is not None:
            volume.remove(old)
    pool.createXML(ET.tostring(volume, encoding="unicode"))
    return found.text


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(prog="python -m bench.migration_speed", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--check", action="store_true", help="fail when the bar is missed")
    given = parser.parse_args(arguments)
    held = measure_migration(given.rounds)
    return 0 if held or not given.check else 1


if __name__ == "__main__":
    sys.exit(main())
