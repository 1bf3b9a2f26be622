"""The theatre for Machines of the Viti Stack: a real KubeVirt, to which all writes are a client's.

A machine consists of objects of the cluster itself there, so that is where to look for what was
leaked, doubled or lost.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from crash.machine_scenarios import SPEC, begins, disks_of, gone
from crash.scenarios import Scenario, snapshots
from crash.theatre import NAME, Theatre, without_moments
from kubevirt_bed import GROUPS, KubeVirtBed

__all__ = ["InKubeVirt", "MachineTheatre"]

Object = dict[str, Any]

API_VERSION = "vitistack.io/v1alpha1"
VITI = f"/apis/{API_VERSION}"
UID = "novacron.io/machine-uid"
# What differs from machine to machine and from time to time.
OF_THE_MOMENT = (
    *("providerID", "nodeName", "lastUpdated", "resourceVersion", "bootTime", "creationTime"),
    *("ipAddresses", "ipv6Addresses", "publicIPAddresses", "privateIPAddresses"),
)
OF_A_MOVE = ("id", "startTime", "endTime", "sourceNode", "targetNode")
NETWORK = {
    "apiVersion": API_VERSION,
    "kind": "NetworkConfiguration",
    "metadata": {"name": "crash-network"},
    "spec": {"vlan": 9},
}
DEFINITIONS = "network-attachment-definitions"
MIGRATIONS = "virtualmachineinstancemigrations"
INSTANCES = "virtualmachineinstances"
SNAPSHOTS, RESTORES = "virtualmachinesnapshots", "virtualmachinerestores"
IMPORTS = "datavolumes"
CLAIMS = "persistentvolumeclaims"
RECLAIM = "novacron.io/reclaim"


@dataclass(frozen=True, slots=True)
class InKubeVirt:
    """A cluster with KubeVirt; there is no host to declare.

    ``guests`` has the instance that each namespace's Machine began with, if any.
    """

    bed: KubeVirtBed
    flags: tuple[str, ...] = ("--families=viti",)
    beneath: str = ""
    guests: dict[str, str | None] = field(default_factory=dict)

    def host(self, name: str, _: Scenario) -> Object:
        raise NotImplementedError(name)

    def machine(self, namespace: str, host: str, scenario: Scenario) -> Object:
        del host
        return {
            "apiVersion": API_VERSION,
            "kind": "Machine",
            "metadata": {"name": NAME, "namespace": namespace},
            "spec": {**SPEC, **scenario.template, "running": scenario.running_before},
        }

    def in_namespace(self, namespace: str) -> KubeVirtBed:
        """Return the bed as seen from a namespace."""
        return KubeVirtBed(self.bed.kubevirt, self.bed.api, namespace)

    def guest(self, namespace: str) -> str | None:
        """Return which instance of a namespace's Machine lives; one that ended stays a moment."""
        found = self.in_namespace(namespace).get(INSTANCES, NAME)
        ended = found and found["status"].get("phase") in ("Succeeded", "Failed")
        return found["metadata"]["uid"] if found and not ended else None

    def check_nothing_leaked(self, objects: dict[str, Object]) -> None:
        for namespace in self.guests:
            if namespace in objects:
                self.check(self.in_namespace(namespace), objects[namespace])
            else:
                self.check_gone(namespace)

    def check(self, bed: KubeVirtBed, obj: Object) -> None:
        """See that a namespace has what its one Machine consists of, once, and nothing else."""
        disks = disks_of(obj) | disks_of({"spec": SPEC})
        wanted = {
            "virtualmachines": {NAME},
            INSTANCES: {NAME} if obj["spec"]["running"] else set(),
            CLAIMS: {f"{NAME}-{disk}" for disk in disks},
            "secrets": {f"{NAME}-cloud-init"},
        }
        if "image" in obj["spec"]:
            wanted[IMPORTS] = {f"{NAME}-root"}
        # What is left of a guest that was stopped goes a moment after it.
        bed.wait("its guest stayed", lambda: len(bed.items(INSTANCES)) == len(wanted[INSTANCES]))
        for plural, names in wanted.items():
            found = bed.items(plural)
            assert {each["metadata"]["name"] for each in found} == names, plural
            owners = {each["metadata"]["labels"][UID] for each in found}
            assert owners <= {obj["metadata"]["uid"]}, plural
        assert [each["metadata"]["name"] for each in bed.items(DEFINITIONS)] == ["crash-network"]
        assert len(bed.items(MIGRATIONS)) <= 1, "it moved more than once"
        assert len(bed.items(RESTORES)) <= 1, "it went back more than once"
        kept = {each["metadata"]["name"] for each in bed.items(SNAPSHOTS)}
        assert kept == {f"{NAME}-{each}" for each in snapshots(obj)}

    def check_gone(self, namespace: str) -> None:
        """See that nothing is left of a Machine, once its guest has ended."""
        bed = self.in_namespace(namespace)
        bed.wait("something is left", lambda: not self.left(bed))

    def left(self, bed: KubeVirtBed) -> list[str]:
        """Return what there is of a Machine, but for disks that were taken off it before."""
        own = ["virtualmachines", INSTANCES, CLAIMS, "secrets", MIGRATIONS, SNAPSHOTS, RESTORES]
        own += [IMPORTS] if bed.kubevirt.imports else []
        return [
            f"{plural} {each['metadata']['name']}"
            for plural in own
            for each in bed.items(plural, UID)
            if each["metadata"]["labels"].get(RECLAIM) != "Retain"
        ]


@dataclass(slots=True)
class MachineTheatre(Theatre):
    """Where scenarios of Machines are played."""

    def prepare_host(self) -> None:
        """Have nothing to prepare: the cluster is there."""

    @property
    def kubevirt(self) -> InKubeVirt:
        """What it is played on."""
        assert isinstance(self.ground, InKubeVirt)
        return self.ground

    def bed(self, namespace: str) -> KubeVirtBed:
        """Return the bed as seen from a namespace."""
        return self.kubevirt.in_namespace(namespace)

    def add_machines(self, count: int) -> list[str]:
        """Bring Machines to where the scenario begins, each in a namespace of its own."""
        first = len(self.namespaces)
        new = [f"{self.host}-{first + number}" for number in range(count)]
        self.namespaces += new
        for name in new:
            self.api.create_namespace(name)
            self.bed(name).create("networkconfigurations", NETWORK)
            if self.scenario.exists_before:
                self.bed(name).create("machines", self.machine(name))
        if self.scenario.exists_before:
            self.finish(partial(begins, self.scenario), new)
        self.kubevirt.guests.update({name: self.kubevirt.guest(name) for name in new})
        return new

    def act(self, namespace: str) -> None:
        """Do what the user does."""
        bed = self.bed(namespace)
        if not self.scenario.exists_before:
            bed.create("machines", self.machine(namespace))
        elif self.scenario.patch is None:
            bed.delete("machines", NAME)
        else:
            bed.patch("machines", NAME, self.scenario.patch)

    def objects(self) -> dict[str, Object]:
        """Return all Machines of this theatre by namespace."""
        listed = self.api.call("GET", f"{VITI}/machines")["items"]
        found = {item["metadata"]["namespace"]: item for item in listed}
        return {name: found[name] for name in self.namespaces if name in found}

    def comparable(self, obj: Object | None) -> Object | None:
        """Return a Machine without what differs from one to the next."""
        if obj is None:
            return None
        metadata = obj["metadata"]
        status = {k: v for k, v in obj["status"].items() if k not in OF_THE_MOMENT}
        for entry in status.get("networkInterfaces") or ():
            assert entry.pop("macAddress")
            entry["ipAddresses"] = len(entry.get("ipAddresses") or ())
        without_moments(status)
        move = status.get("migration") or {}
        status["migration"] = {k: v for k, v in move.items() if k not in OF_A_MOVE}
        namespace = metadata["namespace"]
        return {
            "finalizers": metadata["finalizers"],
            "annotations": sorted(metadata.get("annotations") or {}),
            "status": status,
            "same guest": self.kubevirt.guest(namespace) == self.kubevirt.guests[namespace],
            "addresses": len(obj["status"].get("ipAddresses") or ()),
            "moves": len(self.bed(namespace).items(MIGRATIONS)),
            "restores": len(self.bed(namespace).items(RESTORES)),
        }

    def remove(self, namespaces: list[str]) -> None:
        """Remove Machines and their namespaces, and see that nothing of them stays."""
        there = [name for name in self.objects() if name in namespaces]
        for namespace in there:
            self.bed(namespace).delete("machines", NAME)
        if there:
            self.finish(gone, there)
        for namespace in self.kubevirt.guests.keys() & namespaces:
            self.kubevirt.check_gone(namespace)
            self.bed(namespace).delete("namespaces", namespace, "")
            del self.kubevirt.guests[namespace]

    def clear(self) -> None:
        """Remove all Machines; there is no host to remove."""
        self.remove(self.namespaces)


GROUPS |= {"machines": VITI, "networkconfigurations": VITI}
