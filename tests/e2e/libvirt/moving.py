"""Two real hosts behind a real operator, with guests that count aloud."""

import base64
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import libvirt

from api import Api
from e2e.conftest import Stage
from fleet import Console
from libvirt_daemon import OF_ALL
from machines import virtual_machine
from novacron.cli.kinds import OPERATOR_NAMESPACE
from novacron.localcluster.hypervisor import Fleet
from operators import RunningOperator

Object = dict[str, Any]

__all__ = ["FleetStage", "fleet_stage", "reached_by_tls", "result"]

# Where QEMU is still made ready for a guest, which may come to nothing; every other state counts.
BEING_SET_UP = [libvirt.VIR_DOMAIN_PAUSED, libvirt.VIR_DOMAIN_PAUSED_STARTING_UP]
SLOW = {"bandwidth": "1Mi", "compression": False}


def result(obj: Object) -> str | None:
    """Return how the last move ended, once its record was taken away."""
    if "novacron.io/move" in (obj["metadata"].get("annotations") or {}):
        return None
    found: str | None = (obj["status"].get("migration") or {}).get("result")
    return found


@dataclass
class FleetStage:
    """A stage whose two hosts are real, and exchange guests."""

    scene: Stage
    fleet: Fleet
    hosts: tuple[str, str]

    @classmethod
    def declared(
        cls,
        scene: Stage,
        fleet: Fleet,
        pool: str,
        *,
        tls: bool = True,
        cpu_models: tuple[str | None, str | None] = (None, None),
        storage_classes: Sequence[Object] = (),
        networks: Sequence[Object] = ({}, {}),
    ) -> "FleetStage":
        """Declare the hosts of a fleet, with their disks in one pool of each.

        The first is reached by its socket, the others by their addresses and a certificate.
        """
        names = []
        for number, host in enumerate(fleet.hosts, 1):
            settings = {
                "storagePool": pool,
                "network": host.network,
                "migration": {"uri": fleet.peer_uri(number), "tls": tls},
                "cpuModel": cpu_models[number - 1],
                "storageClasses": list(storage_classes),
                "networks": networks[number - 1],
            }
            more = {"overcommit": {"cpu": 100, "memory": 10, "disk": 10}}
            near = {"endpoint": host.uri}
            reached = near if number == 1 else reached_by_tls(scene.api, fleet, number)
            name = scene.declare_host(
                driver="libvirt", libvirt=settings, simulation=None, **reached, **more
            )
            label = {"spec": {"labels": {"test/fleet": scene.namespace}}}
            scene.api.patch_host(name, label)
            names.append(name)
        for name in names:
            scene.until_host(name, _is_ready)
        return cls(scene, fleet, (names[0], names[1]))

    def run(self, name: str, *, number: int = 0, **more: Any) -> Object:
        """Have a guest run that counts, on the first host unless it is to be the other."""
        policy, networks = more.pop("policy", None), more.pop("networks", [{"name": "default"}])
        labels = more.pop("labels", {})
        with self.cordoned(self.hosts[1 - number]):
            size = {"cpu": 1, "memory": "512Mi", "disk": "256Mi"} | more
            body = virtual_machine(
                name,
                self.scene.namespace,
                nodeSelector={"test/fleet": self.scene.namespace},
                networks=networks,
                **size,
            )
            body["spec"]["template"]["metadata"] = {"labels": labels}
            if policy:
                body["spec"]["migrationPolicy"] = policy
            self.scene.api.create(body)
            obj = self.scene.until_running(name)
        assert obj["status"]["nodeName"] == self.hosts[number]
        return obj

    @contextmanager
    def cordoned(self, host: str) -> Iterator[None]:
        """Have no machine come to a host meanwhile."""
        self.scene.close(host)
        yield
        self.scene.open(host)

    def ask(self, name: str, **words: str | None) -> None:
        """Write annotations as kubectl would."""
        notes = {f"novacron.io/{key.replace('_', '-')}": text for key, text in words.items()}
        patch = {"metadata": {"annotations": notes}}
        self.scene.api.patch_machine(self.scene.namespace, name, patch)

    def moved(self, name: str) -> Object:
        """Wait until the last move is over."""
        return self.scene.until(name, lambda obj: result(obj) is not None)

    def under_way(self, name: str, percent: int = 0) -> Object:
        """Wait until a move is as far as that."""

        def so_far(obj: Object) -> bool:
            migration = obj["status"].get("migration") or {}
            return obj["status"]["phase"] == "Migrating" and (
                migration.get("progress", 0) >= percent and migration.get("transferredBytes", 0) > 0
            )

        return self.scene.until(name, so_far)

    def tick(self, obj: Object, number: int) -> int:
        """Hear a guest count on one of the hosts."""
        with self.domain(obj, number) as domain:
            console = Console(domain)
            try:
                return console.tick()
            finally:
                console.close()

    @contextmanager
    def domain(self, obj: Object, number: int) -> Iterator[libvirt.virDomain]:
        """Look at a guest as somebody with virsh on one of the hosts does."""
        connection = libvirt.open(self.fleet.hosts[number].uri)
        try:
            yield connection.lookupByUUIDString(obj["metadata"]["uid"])
        finally:
            connection.close()

    def guests(self, obj: Object) -> list[int]:
        """Return the numbers of the hosts on which a guest runs, by asking each of them."""
        found = []
        for number, host in enumerate(self.fleet.hosts):
            if host.running() is None:
                continue
            connection = libvirt.open(host.uri)
            active = connection.listAllDomains(libvirt.VIR_CONNECT_LIST_DOMAINS_ACTIVE)
            mine = [each for each in active if each.UUIDString() == obj["metadata"]["uid"]]
            if any(each.state() != BEING_SET_UP for each in mine):
                found.append(number)
            connection.close()
        return found

    def left_behind(self) -> list[str]:
        """Return the names of all domains, and of all volumes that are a machine's."""
        found: list[str] = []
        for host in self.fleet.hosts:
            connection = libvirt.open(host.uri)
            found += [each.name() for each in connection.listAllDomains()]
            for pool in connection.listAllStoragePools():
                pool.refresh()
                found += [name for name in pool.listVolumes() if not name.startswith(OF_ALL)]
            connection.close()
        return found


@contextmanager
def fleet_stage(
    operator: RunningOperator, api: Api, fleet: Fleet, pool: str, *classes: Object
) -> Iterator[FleetStage]:
    """Declare the hosts of a fleet, and see in the end that nothing is left on them."""
    scene = Stage(api, operator, operator.namespaces[0], [])
    found = FleetStage.declared(scene, fleet, pool, storage_classes=classes)
    yield found
    scene.clear()
    assert found.left_behind() == []


def reached_by_tls(api: Api, fleet: Fleet, number: int) -> Object:
    """Return how a host of a fleet is declared, with a Secret that lets us in."""
    pair = fleet.caller()
    files = {
        "ca.crt": fleet.authority.pair.certificate,
        "tls.crt": pair.certificate,
        "tls.key": pair.key,
    }
    data = {name: base64.b64encode(path.read_bytes()).decode() for name, path in files.items()}
    name = f"fleet-{uuid4().hex[:8]}"
    body = {"metadata": {"name": name}, "data": data}
    api.call("POST", f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/secrets", body)
    return {"endpoint": fleet.tls_uri(number), "credentialsSecret": {"name": name}}


def _is_ready(obj: Object) -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
