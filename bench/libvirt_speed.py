"""Real domains: how long from apply to started beside virsh, and what many at once cost us.

On private libvirt daemons, with guests that halt in their boot sector, so that the machine's time
goes to those who are measured. Domains made at once are paused as soon as they start.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from xml.etree import ElementTree as ET

import libvirt

from bench.cluster import Cluster, Operator, throwaway_cluster
from bench.contenders import Launch, NovaCron
from bench.machines import API_VERSION, NAMESPACE
from bench.plain_libvirt import PREFIX, bare_definition, by_the_binding, model_of
from bench.report import at_most, conclude, show_table
from novacron.localcluster.hypervisor import Fleet, Hypervisor

__all__ = ["main", "measure_fleet", "measure_libvirt"]

HOST = "bench"
TWIN = "twin"
ROUNDS = 7
MACHINES = 50
FLEET_HOSTS = 3
FLEET_MACHINES = 200
MIB = 1024 * 1024
HALT = bytes([0xFA, 0xF4, 0xEB, 0xFD]).ljust(510, b"\0") + b"\x55\xaa"
PATIENCE_S = 600
LOOK_S = 0.1
# An API server sets up its storage for a kind once more right after that was installed, and lets
# nobody follow the kind for two seconds ("storage is (re)initializing").
SETTLED_S = 4.0


class WithImages(NovaCron):
    """Our operator, told where a guest is that halts at once."""

    def __init__(self, images: Path) -> None:
        self._images = images

    def launch(self, kubeconfig: Path, scratch: Path) -> Launch:
        launch = super().launch(kubeconfig, scratch)
        command = (*launch.command, f"--images-directory={self._images}")
        return Launch(command, launch.ready_url, launch.environment)


def measure_libvirt(rounds: int = ROUNDS, machines: int = MACHINES) -> bool:
    """Measure one host, print and keep the figures, and say whether every bar is held."""
    with stage() as (cluster, operator, connections):
        speed = Speed(cluster, connections[0])
        with_image = speed.ours()  # the first also brings the image
        very_first = [(speed.virsh(), with_image)]
        first = [(speed.virsh(), speed.ours()) for _ in range(rounds)]
        cpu_ms = at_once(cluster, operator, connections, machines)
        later = [(speed.virsh(), speed.ours()) for _ in range(rounds)]
    bars = [
        at_most(
            f"{when}: apply until started, above virsh, s",
            _shown(pairs, when),
            0.5,
        )
        for when, pairs in (
            ("the very first", very_first),
            ("few machines", first),
            (f"beside {machines} machines", later),
        )
    ]
    bars.append(at_most(f"operator CPU for each of {machines} at once, ms", cpu_ms, 15))
    times = {"very_first": very_first, "few": first, "later": later}
    figures = {**times, "machines": machines, "cpu_ms_per_machine": cpu_ms}
    return conclude("libvirt", figures, bars)


def measure_fleet(machines: int = FLEET_MACHINES) -> bool:
    """Measure several hosts, print and keep the figures, and say whether the bar is held."""
    with stage(FLEET_HOSTS) as (cluster, operator, connections):
        Speed(cluster, connections[0]).ours()
        ours = at_once(cluster, operator, connections, machines)
        plain = _plain_at_once(cluster, connections, machines)
    at_that = f"for each of {machines} at once on {FLEET_HOSTS} hosts"
    bars = [
        at_most(f"operator CPU {at_that}, ms", ours, 10),
        # The same on a slower machine, unlike the first.
        at_most("times as much as libvirt's binding alone takes", ours / plain, 10),
    ]
    times = f"{ours:.2f} ({ours / plain:.1f}x)"
    rows = [("libvirt's binding alone", f"{plain:.2f}"), ("operator", times)]
    show_table(f"CPU {at_that}", ("", "ms"), rows)
    figures = {"cpu_ms_per_machine": ours, "plain_cpu_ms_per_machine": plain}
    return conclude("fleet", {"hosts": FLEET_HOSTS, "machines": machines, **figures}, bars)


def _plain_at_once(
    cluster: Cluster, connections: Sequence[libvirt.virConnect], count: int
) -> float:
    """Have the same domains made without us, once ours are gone; return CPU ms for each."""
    models = [model_of(each, _ours(each)[0]) for each in connections]
    cluster.plane.kubectl("delete", "virtualmachines.novacron.io", "--all", "-n", NAMESPACE)
    # Nobody kept the old connections alive while that was waited for.
    again = [libvirt.open(model["uri"]) for model in models]
    with pausing(again, PREFIX) as paused:
        cpu_ms = by_the_binding(models, count)
        _wait(lambda: len(paused) == count, f"{count} domains", LOOK_S)
    return cpu_ms


def _ours(connection: libvirt.virConnect) -> list[libvirt.virDomain]:
    return [each for each in connection.listAllDomains() if each.name().startswith(NAMESPACE)]


def _shown(pairs: Sequence[tuple[float, float]], when: str) -> float:
    """Print how long each took, and return how much more we do in the middle of them."""
    virsh, ours = (statistics.median(column) for column in zip(*pairs, strict=True))
    rows = [(f"round {n}", f"{v:.3f}", f"{o:.3f}") for n, (v, o) in enumerate(pairs, 1)]
    rows.append(("median", f"{virsh:.3f}", f"{ours:.3f} ({ours / virsh:.2f}x)"))
    title = f"{when}: seconds until the domain runs"
    show_table(title, ("", "virsh define, start", "apply"), rows)
    return float(ours - virsh)


@contextmanager
def stage(hosts: int = 1) -> Iterator[tuple[Cluster, Operator, list[libvirt.virConnect]]]:
    """Start a control plane, hosts and our operator; nothing of them is left afterwards."""
    libvirt.virEventRegisterDefaultImpl()
    with tempfile.TemporaryDirectory(prefix="novacron-bench-libvirt-") as scratch:
        directory = Path(scratch)
        fleet = Fleet(directory / "hosts", hosts)
        fleet.start()
        try:
            with (
                throwaway_cluster(simulated_hosts=0) as cluster,
                cluster.running(WithImages(_images(directory))) as operator,
            ):
                for number, hypervisor in enumerate(fleet.hosts, 1):
                    cluster.create(_host(hypervisor, f"{HOST}-{number}"))
                wait = ("wait", "hosts.novacron.io", "--all", "--for=condition=Ready")
                cluster.plane.kubectl(*wait, "--timeout=60s")
                time.sleep(SETTLED_S)
                yield cluster, operator, [libvirt.open(each.uri) for each in fleet.hosts]
        finally:
            fleet.stop()


@dataclass(slots=True)
class Speed:
    """One machine after the other, by us and by virsh in turn."""

    cluster: Cluster
    connection: libvirt.virConnect
    _made: int = 0

    def ours(self) -> float:
        """Create a machine and return after how long its domain runs."""
        self._made += 1
        begun = time.monotonic()
        self.cluster.create(machine(name := f"one-{self._made}"))
        self._until_running(f"{NAMESPACE}.{name}")
        return time.monotonic() - begun

    def virsh(self) -> float:
        """Define and start the last machine's XML under another name."""
        twin = _twin(self.connection, f"{NAMESPACE}.one-{self._made}")
        with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
            file.write(twin)
            file.flush()
            begun = time.monotonic()
            for command in (("define", file.name), ("start", TWIN)):
                uri = self.connection.getURI()
                subprocess.run(["virsh", "-q", "-c", uri, *command], check=True)
            taken = time.monotonic() - begun
        domain = self.connection.lookupByName(TWIN)
        domain.destroy()
        domain.undefine()
        pool = self.connection.storagePoolLookupByName("novacron")
        pool.storageVolLookupByName(f"{TWIN}-root.qcow2").delete()
        return taken

    def _until_running(self, name: str) -> None:
        _wait(lambda: name in {each.name() for each in _running(self.connection)}, name)


def at_once(
    cluster: Cluster, operator: Operator, connections: Sequence[libvirt.virConnect], count: int
) -> float:
    """Create machines at once; return the operator's CPU milliseconds for each."""
    before = operator.usage.cpu_s
    with pausing(connections, f"{NAMESPACE}.many-") as paused:
        cluster.create(*(machine(f"many-{number}") for number in range(count)))
        _wait(lambda: len(paused) == count, f"{count} machines", LOOK_S)
        _wait(lambda: _all_ready(cluster), f"{count} machines", LOOK_S)
    return (operator.usage.cpu_s - before) * 1000 / count


@contextmanager
def pausing(connections: Sequence[libvirt.virConnect], prefix: str) -> Iterator[set[str]]:
    """Pause every domain of such a name as soon as it starts; give the names of those that are.

    By libvirt's events: whoever asks all daemons again and again takes the CPU from those who are
    measured.
    """
    paused: set[str] = set()
    ended = threading.Event()

    def turned(_: object, domain: libvirt.virDomain, event: int, *__: object) -> None:
        if event == libvirt.VIR_DOMAIN_EVENT_STARTED and domain.name().startswith(prefix):
            domain.suspend()
            paused.add(domain.name())

    def deliver() -> None:
        while not ended.is_set():
            libvirt.virEventRunDefaultImpl()

    kind = libvirt.VIR_DOMAIN_EVENT_ID_LIFECYCLE
    listening = [
        (each, each.domainEventRegisterAny(None, kind, turned, None)) for each in connections
    ]
    # It waits for events without end, and there is at least a sign of life now and then.
    threading.Thread(target=deliver, daemon=True).start()
    try:
        yield paused
    finally:
        ended.set()
        for connection, number in listening:
            connection.domainEventDeregisterAny(number)


def machine(name: str) -> dict[str, Any]:
    """Return a machine without a network, whose guest halts."""
    template = {
        "resources": {"cpu": 1, "memory": "512Mi", "disk": "16Mi"},
        "image": {"source": "builtin://halt"},
        "nodeSelector": {"bench": HOST},
    }
    return {
        "apiVersion": API_VERSION,
        "kind": "VirtualMachine",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"running": True, "template": {"spec": template}},
    }


def _host(hypervisor: Hypervisor, name: str) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "driver": "libvirt",
        "endpoint": hypervisor.uri,
        "labels": {"bench": HOST},
        "overcommit": {"cpu": 100, "memory": 10, "disk": 10},
        "libvirt": {"network": hypervisor.network},
    }
    return {
        "apiVersion": API_VERSION,
        "kind": "Host",
        "metadata": {"name": name},
        "spec": spec,
    }


def _images(directory: Path) -> Path:
    images = directory / "images"
    images.mkdir()
    raw = directory / "halt.raw"
    raw.write_bytes(HALT.ljust(MIB, b"\0"))
    command = ["qemu-img", "convert", "-q", "-O", "qcow2", str(raw), str(images / "halt.qcow2")]
    subprocess.run(command, check=True)
    return images


def _twin(connection: libvirt.virConnect, name: str) -> str:
    """Return the XML of a domain as another one's, with a first disk made for it beforehand."""
    domain = connection.lookupByName(name)
    uid = domain.UUIDString()
    pool = connection.storagePoolLookupByName("novacron")
    root = f"{uid}-root.qcow2"
    disk = ET.fromstring(bare_definition(pool.storageVolLookupByName(root)))
    cast("ET.Element", disk.find("name")).text = f"{TWIN}-root.qcow2"
    pool.createXML(ET.tostring(disk, encoding="unicode"))
    xml: str = domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE)
    return (
        xml.replace(f"<name>{name}</name>", f"<name>{TWIN}</name>")
        .replace(root, f"{TWIN}-root.qcow2")
        .replace(f"{uid}-console", f"{TWIN}-console")
        .replace(uid, str(uuid.uuid4()), 1)
    )


def _all_ready(cluster: Cluster) -> bool:
    """Say whether all machines are Ready, by one request.

    `kubectl wait` asks for each, a few in a second, and the operator would be watched for half a
    minute more.
    """
    listed = json.loads(
        cluster.plane.kubectl("get", "virtualmachines.novacron.io", "-n", NAMESPACE, "-o", "json")
    )
    return all(
        any(each["type"] == "Ready" and each["status"] == "True" for each in _conditions(item))
        for item in listed["items"]
    )


def _conditions(item: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (item.get("status") or {}).get("conditions") or []
    return found


def _running(connection: libvirt.virConnect) -> list[libvirt.virDomain]:
    """Return the domains that run; one that is being started counts as paused."""
    found: list[libvirt.virDomain] = connection.listAllDomains(
        libvirt.VIR_CONNECT_LIST_DOMAINS_RUNNING
    )
    return found


def _wait(claim: Any, what: str, look_s: float = 0.005) -> None:  # noqa: ANN401 - a condition
    deadline = time.monotonic() + PATIENCE_S
    while not claim():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what} did not run in time")
        time.sleep(look_s)


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(prog="python -m bench.libvirt_speed", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--machines", type=int)
    parser.add_argument("--fleet", action="store_true", help=f"on {FLEET_HOSTS} hosts")
    parser.add_argument("--check", action="store_true", help="fail when a bar is missed")
    given = parser.parse_args(arguments)
    if given.fleet:
        held = measure_fleet(given.machines or FLEET_MACHINES)
    else:
        held = measure_libvirt(given.rounds, given.machines or MACHINES)
    return 0 if held or not given.check else 1


if __name__ == "__main__":
    sys.exit(main())
