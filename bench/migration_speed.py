"""Live migration: how long from asking us until it is written down as done, beside virsh.

Two hosts of one machine share a directory with the disks. Both migrate guests of the same image
and memory, with the same flags, in turn and in both directions: first with the same limit on
bandwidth, as on a network that others use too, and then without one. What we add is about the same
for every move, so it shows most where the move itself is short. We are asked over a connection that
is open: two programs that ask and wait, such as kubectl, take their own starts besides.
"""

import argparse
import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import libvirt
import orjson
import uvloop

from bench.cluster import Cluster, Operator, throwaway_cluster
from bench.libvirt_speed import WithImages
from bench.load import connect
from bench.machines import API_VERSION, COLLECTION, NAMESPACE
from bench.plain_libvirt import bare_definition
from bench.report import at_most, conclude, show_table
from bench.watch import events
from novacron.guests.builtin import builtin
from novacron.localcluster.hypervisor import Fleet
from novacron.workplace.home import Home
from novacron.workplace.progress import Silent

__all__ = ["main", "measure_migration"]

ROUNDS = 6
FREE_ROUNDS = 20  # QEMU needs another pass for some of them, which takes 0.2 s
BAR = 1.15
POOL = "shared"
NAME = "traveller"
TWIN = "twin"
BOOT_S = 20
PATIENCE_S = 120
SETTLE_S = 2
BANDWIDTH_MIB = 25
FLAGS = (
    *("--live", "--p2p", "--persistent", "--undefinesource", "--abort-on-error", "--unsafe"),
    *("--auto-converge", "--compressed", "--comp-methods", "xbzrle"),
)
CAP = ("--bandwidth", str(BANDWIDTH_MIB))


@dataclass(frozen=True, slots=True)
class Pair:
    """What one move by virsh and one of ours took, the latter also of the operator's CPU."""

    virsh_s: float
    ours_s: float
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Ground:
    """Two hosts, one machine of ours and one that only virsh knows."""

    cluster: Cluster
    fleet: Fleet
    operator: Operator

    def pair(self, number: int, limit: Sequence[str]) -> Pair:
        """Have virsh move its own and ask for ours; who is first turns every two rounds."""
        to = 2 - number % 2  # there and back again
        if number // 2 % 2:
            ours_s, cpu_s = self.ours(to)
            return Pair(self.virsh(to, limit), ours_s, cpu_s)
        virsh_s = self.virsh(to, limit)
        return Pair(virsh_s, *self.ours(to))

    def lift_limit(self) -> None:
        """Let our machine travel as fast as it can."""
        patch = '{"spec": {"migrationPolicy": {"bandwidth": null}}}'
        machine = (f"vm.novacron.io/{NAME}", "-n", NAMESPACE)
        self.cluster.plane.kubectl("patch", *machine, "--type=merge", "--patch", patch)
        time.sleep(SETTLE_S)

    def ours(self, to: int) -> tuple[float, float]:
        """Ask for our machine to be moved; return after what time it is written down, and CPU."""
        before = self.operator.usage.cpu_s
        moved_s = uvloop.run(_moved(self.cluster.kubeconfig, f"real-{to}"))
        return moved_s, self.operator.usage.cpu_s - before

    def virsh(self, to: int, limit: Sequence[str]) -> float:
        """Have virsh move its own."""
        here = self.fleet.hosts[2 - to].uri
        begun = time.monotonic()
        migrate = ["virsh", "-q", "-c", here, "migrate", *FLAGS, *limit]
        subprocess.run([*migrate, TWIN, self.fleet.peer_uri(to)], check=True)
        return time.monotonic() - begun


def measure_migration(rounds: int = ROUNDS, free_rounds: int = FREE_ROUNDS) -> bool:
    """Measure both, print and keep the figures, and say whether the bars are held."""
    with ground() as both:
        limited = [both.pair(number, CAP) for number in range(rounds)]
        both.lift_limit()
        # Both are where the last round left them.
        free = [both.pair(rounds + number, ()) for number in range(free_rounds)]
    capped = _shown(f"seconds of a live migration at {BANDWIDTH_MIB} MiB/s", limited)
    uncapped = _shown("seconds of a live migration, no limit on bandwidth", free)
    bars = [
        at_most(f"total time at {BANDWIDTH_MIB} MiB/s, times that of virsh migrate", capped, BAR),
        at_most("without a limit on bandwidth, times that of virsh migrate", uncapped, BAR),
    ]
    figures = {
        "limit_mib_s": BANDWIDTH_MIB,
        "limited": [asdict(each) for each in limited],
        "unlimited": [asdict(each) for each in free],
    }
    return conclude("migration", figures, bars)


async def _moved(kubeconfig: Path, host: str) -> float:
    """Ask over a connection that is open; return after what time the move is written down."""
    patch = {"metadata": {"annotations": {"novacron.io/migrate-to": host}}}
    headers = {"Content-Type": "application/merge-patch+json"}
    async with connect(kubeconfig) as session, asyncio.timeout(PATIENCE_S):
        async with session.get(f"{COLLECTION}/{NAME}") as answer:
            version = orjson.loads(await answer.read())["metadata"]["resourceVersion"]
        begun = time.monotonic()
        async with session.patch(
            f"{COLLECTION}/{NAME}", data=orjson.dumps(patch), headers=headers
        ) as asked:
            asked.raise_for_status()
        async for event in events(session, version):
            if event["object"].get("status", {}).get("nodeName") == host:
                return time.monotonic() - begun
        raise RuntimeError("the watch ended before the machine had moved")


def _shown(title: str, pairs: Sequence[Pair]) -> float:
    """Print what moves took; return how many times that of virsh ours is."""
    virsh = statistics.median(each.virsh_s for each in pairs)
    ours = statistics.median(each.ours_s for each in pairs)
    cpu = statistics.median(each.cpu_s for each in pairs)
    rows = [
        (f"round {number}", f"{each.virsh_s:.2f}", f"{each.ours_s:.2f}", f"{each.cpu_s:.3f}")
        for number, each in enumerate(pairs, 1)
    ]
    rows.append(("median", f"{virsh:.2f}", f"{ours:.2f} ({ours / virsh:.2f}x)", f"{cpu:.3f}"))
    show_table(title, ("", "virsh migrate", "asked of us", "operator CPU"), rows)
    return ours / virsh


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
                cluster.running(WithImages(images)) as operator,
            ):
                _declare(cluster, fleet)
                _make_twin(fleet)
                time.sleep(BOOT_S)  # both are idle then
                yield Ground(cluster, fleet, operator)
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
    volume = ET.fromstring(bare_definition(pool.storageVolLookupByName(name)))
    found = volume.find("name")
    assert found is not None
    found.text = f"twin-{name}"
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
