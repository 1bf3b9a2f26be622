"""The theatre for Machines of the Viti Stack: a real KubeVirt, to which all writes are a client's.

A machine consists of objects of the cluster itself there, so that is where to look for what was
leaked, doubled or lost.
"""

from dataclasses import dataclass
from typing import Any

from crash.scenarios import Scenario
from crash.theatre import NAME, Theatre
from kubevirt_bed import GROUPS, KubeVirtBed
from machines import condition

__all__ = ["MACHINE_SCENARIOS", "InKubeVirt", "MachineTheatre"]

Object = dict[str, Any]

API_VERSION = "vitistack.io/v1alpha1"
VITI = f"/apis/{API_VERSION}"
UID = "novacron.io/machine-uid"
# What differs from machine to machine and from time to time.
OF_THE_MOMENT = ("providerID", "ipAddresses", "nodeName", "lastUpdated", "resourceVersion")
SPEC = {
    "template": "small",
    "disks": [
        {"name": "root", "accessMode": "ReadWriteMany"},
        {
            "name": "data",
            "size": "1Gi",
            "storageClass": "fast-ssd",
            "accessMode": "ReadWriteMany",
        },
    ],
    "networks": [{"name": "eth0", "networkName": "crash-network"}],
    "cloudInit": {"userData": "#cloud-config\n"},
}
NETWORK = {
    "apiVersion": API_VERSION,
    "kind": "NetworkConfiguration",
    "metadata": {"name": "crash-network"},
    "spec": {"vlan": 9},
}
CLAIMS = {f"{NAME}-root", f"{NAME}-data"}
DEFINITIONS = "network-attachment-definitions"


def running(obj: Object | None) -> bool:
    """The Machine runs, with as many CPUs as its spec says now."""
    if obj is None or condition(obj, "Ready").get("status") != "True":
        return False
    wanted = (obj["spec"].get("resources") or {}).get("cpu", {}).get("cores", 1)
    seen = obj["status"]["observedGeneration"] == obj["metadata"]["generation"]
    return bool(seen and obj["status"]["phase"] == "Running" and obj["status"]["cpus"] == wanted)


def stopped(obj: Object | None) -> bool:
    """The Machine is stopped, as asked."""
    return obj is not None and (obj.get("status") or {}).get("phase") == "Stopped"


def gone(obj: Object | None) -> bool:
    """Nothing of it is left."""
    return obj is None


# The first is part of the everyday tests.
MACHINE_SCENARIOS = (
    Scenario("stop", stopped, patch={"spec": {"running": False}}),
    Scenario("create", running, exists_before=False),
    Scenario("start", running, running_before=False, patch={"spec": {"running": True}}),
    Scenario("resize", running, patch={"spec": {"resources": {"cpu": {"cores": 2}}}}),
    Scenario("delete", gone, patch=None),
)


@dataclass(frozen=True, slots=True)
class InKubeVirt:
    """A cluster with KubeVirt; there is no host to declare."""

    bed: KubeVirtBed
    flags: tuple[str, ...] = ("--families=viti",)
    beneath: str = ""

    def host(self, name: str, _: Scenario) -> Object:
        raise NotImplementedError(name)

    def machine(self, namespace: str, host: str, scenario: Scenario) -> Object:
        del host
        return {
            "apiVersion": API_VERSION,
            "kind": "Machine",
            "metadata": {"name": NAME, "namespace": namespace},
            "spec": {**SPEC, "running": scenario.running_before},
        }

    def in_namespace(self, namespace: str) -> KubeVirtBed:
        """Return the bed as seen from a namespace."""
        return KubeVirtBed(self.bed.kubevirt, self.bed.api, namespace)

    def check_nothing_leaked(self, objects: dict[str, Object]) -> None:
        for namespace, obj in objects.items():
            self.check(self.in_namespace(namespace), obj)

    def check(self, bed: KubeVirtBed, obj: Object) -> None:
        """See that a namespace has what its one Machine consists of, once, and nothing else."""
        runs = obj["spec"]["running"]
        wanted = {
            "virtualmachines": {NAME},
            "virtualmachineinstances": {NAME} if runs else set(),
            "persistentvolumeclaims": CLAIMS,
            "secrets": {f"{NAME}-cloud-init"},
        }
        for plural, names in wanted.items():
            found = bed.items(plural)
            assert {each["metadata"]["name"] for each in found} == names, plural
            owners = {each["metadata"]["labels"][UID] for each in found}
            assert owners <= {obj["metadata"]["uid"]}, plural
        assert [each["metadata"]["name"] for each in bed.items(DEFINITIONS)] == ["crash-network"]


@dataclass(slots=True)
class MachineTheatre(Theatre):
    """Where scenarios of Machines are played."""

    def prepare_host(self) -> None:
        """Have nothing to prepare: the cluster is there."""

    def bed(self, namespace: str) -> KubeVirtBed:
        """Return the bed as seen from a namespace."""
        assert isinstance(self.ground, InKubeVirt)
        return self.ground.in_namespace(namespace)

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
            self.finish(running if self.scenario.running_before else stopped, new)
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

    def counts(self, write: str) -> bool:
        """Say whether to kill at a write; what is told as an event nobody relies on."""
        return "events" not in write

    def comparable(self, obj: Object | None) -> Object | None:
        """Return a Machine without what differs from one to the next."""
        if obj is None:
            return None
        status = {k: v for k, v in obj["status"].items() if k not in OF_THE_MOMENT}
        for entry in status.get("networkInterfaces") or ():
            assert entry.pop("macAddress")
        for entry in status["conditions"]:
            del entry["lastProbeTime"], entry["lastTransitionTime"]
        status["conditions"] = sorted(status["conditions"], key=lambda entry: str(entry["type"]))
        return {"finalizers": obj["metadata"]["finalizers"], "status": status}

    def clear(self) -> None:
        """Remove all Machines, and see that nothing of them stays."""
        for namespace in self.objects():
            self.bed(namespace).delete("machines", NAME)
        self.finish(gone, self.namespaces)
        for namespace in self.namespaces:
            self.bed(namespace).wait("something is left", lambda ns=namespace: not self.left(ns))
            self.bed(namespace).delete("namespaces", namespace, "")

    def left(self, namespace: str) -> list[str]:
        """Return what is still there of Machines that are gone."""
        plurals = (
            "virtualmachines",
            "virtualmachineinstances",
            "persistentvolumeclaims",
            "secrets",
        )
        found = [(each, self.bed(namespace).items(each, UID)) for each in plurals]
        return [f"{plural}: {len(items)}" for plural, items in found if items]


GROUPS |= {"machines": VITI, "networkconfigurations": VITI}
