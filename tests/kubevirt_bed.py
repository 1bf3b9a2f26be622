"""A control plane with a real KubeVirt and the stand-in for its nodes, for tests.

The workers of one run share it: it costs half a minute and a gigabyte. Whoever comes first
starts it, whoever leaves last stops it.
"""

import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from api import Api, Refused
from chart.audit import Audit
from control_plane import ALL, discard, throw_away
from novacron.app.rights import OPERATOR
from novacron.localcluster.binaries import locate
from novacron.localcluster.controlplane import ControlPlane
from novacron.localcluster.kubevirt.addition import KubeVirt
from novacron.localcluster.kubevirt.binaries import locate as locate_kubevirt
from novacron.localcluster.kubevirt.flags import FLAGS
from novacron.localcluster.kubevirt.standin.wishes import FAIL, HOLD
from novacron.workplace.home import Home
from novacron.workplace.lock import holding
from novacron.workplace.progress import Silent

__all__ = [
    "FAIL",
    "HOLD",
    "KubeVirtBed",
    "audit_of",
    "claim",
    "fresh_namespace",
    "migration",
    "new_bed",
    "running_bed",
    "shared_bed",
    "stop_bed",
    "virtual_machine",
]

Object = dict[str, Any]

# A dead node is noticed in a few seconds instead of one minute.
PATIENCE = {
    "kube-controller-manager": ["--node-monitor-grace-period=15s", "--node-monitor-period=1s"]
}
GROUPS = {
    "virtualmachines": "/apis/kubevirt.io/v1",
    "virtualmachineinstances": "/apis/kubevirt.io/v1",
    "virtualmachineinstancemigrations": "/apis/kubevirt.io/v1",
    "virtualmachinesnapshots": "/apis/snapshot.kubevirt.io/v1beta1",
    "network-attachment-definitions": "/apis/k8s.cni.cncf.io/v1",
    "datavolumes": "/apis/cdi.kubevirt.io/v1beta1",
    "storageprofiles": "/apis/cdi.kubevirt.io/v1beta1",
    "storageclasses": "/apis/storage.k8s.io/v1",
}
OURS = (
    "/apis/vitistack.io/v1alpha1/namespaces/{}/machines",
    "/apis/novacron.io/v1alpha1/namespaces/{}/virtualmachines",
)
GONE, NOT_YET = 404, 429
LONG_SECONDS = 30.0
SUBRESOURCES = "/apis/subresources.kubevirt.io/v1"
_RUNNING: list["KubeVirtBed"] = []


@dataclass(frozen=True)
class KubeVirtBed:
    """The cluster, KubeVirt in it, and a plain client for its administrator."""

    kubevirt: KubeVirt
    api: Api
    namespace: str = "default"

    @property
    def plane(self) -> ControlPlane:
        """The Kubernetes below."""
        return self.kubevirt.plane

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.plane.kubeconfig

    def path(self, plural: str, name: str | None = None, namespace: str | None = None) -> str:
        """Where objects of a kind are; ``namespace=""`` for those without."""
        where = self.namespace if namespace is None else namespace
        inside = f"/namespaces/{where}" if where else ""
        tail = f"/{name}" if name else ""
        return f"{GROUPS.get(plural, '/api/v1')}{inside}/{plural}{tail}"

    def create(self, plural: str, body: Object, namespace: str | None = None) -> Object:
        """Create an object."""
        return self.api.call("POST", self.path(plural, namespace=namespace), body)

    def get(self, plural: str, name: str, namespace: str | None = None) -> Object | None:
        """Return an object, or None when there is none."""
        try:
            return self.api.call("GET", self.path(plural, name, namespace))
        except Refused as refused:
            if refused.code == 404:
                return None
            raise

    def items(self, plural: str, selector: str = "") -> list[Object]:
        """Return all objects of a kind, those with the labels."""
        listed = self.api.call("GET", f"{self.path(plural)}?labelSelector={selector}")
        found: list[Object] = listed["items"]
        return found

    def patch(self, plural: str, name: str, patch: Object, namespace: str | None = None) -> Object:
        """Merge a patch into an object."""
        return self.api.call("PATCH", self.path(plural, name, namespace), patch, merge=True)

    def annotate(
        self, plural: str, name: str, note: str, value: str | None, namespace: str | None = None
    ) -> Object:
        """Set an annotation, or take it away."""
        patch = {"metadata": {"annotations": {note: value}}}
        return self.patch(plural, name, patch, namespace)

    def delete(self, plural: str, name: str, namespace: str | None = None) -> None:
        """Ask for an object to be deleted."""
        self.api.call("DELETE", self.path(plural, name, namespace))

    def ask(self, name: str, what: str, body: Object | None = None) -> None:
        """Ask virt-api itself for something about a VirtualMachine: start, stop, restart…"""
        where = f"namespaces/{self.namespace}/virtualmachines/{name}/{what}"
        self.api.call("PUT", f"{SUBRESOURCES}/{where}", body or {})

    def ask_instance(self, name: str, what: str) -> None:
        """Ask virt-api for something about an instance: pause, unpause, softreboot…"""
        where = f"namespaces/{self.namespace}/virtualmachineinstances/{name}/{what}"
        self.api.call("PUT", f"{SUBRESOURCES}/{where}", {})

    def wait(self, what: str, probe: Callable[[], Any], seconds: float = 60.0) -> Any:
        """Return what the probe finds as soon as it finds something."""
        end = time.monotonic() + seconds
        while not (found := probe()):
            assert time.monotonic() < end, f"after {seconds:.0f} s: {what}; {self.summary()}"
            time.sleep(0.1)
        return found

    def instance(self, name: str, phase: str = "Running", seconds: float = 60.0) -> Object:
        """Return the instance once it is in this phase."""

        def look() -> Object | None:
            found = self.get("virtualmachineinstances", name)
            return found if found and found["status"].get("phase") == phase else None

        there: Object = self.wait(f"{name} is not {phase}", look, seconds)
        return there

    def started(self, name: str, *claims: str, **changes: Any) -> Object:
        """Create a VirtualMachine with claims for its disks; return its running instance."""
        for each in claims:
            self.create("persistentvolumeclaims", claim(each))
        self.create("virtualmachines", virtual_machine(name, *claims, **changes))
        return self.instance(name)

    def printable(self, name: str) -> str | None:
        """Return what KubeVirt calls the state of a VirtualMachine."""
        found = self.get("virtualmachines", name) or {}
        return (found.get("status") or {}).get("printableStatus")

    def awaits_claims(self, name: str) -> bool:
        """Say whether a VirtualMachine waits for its claims.

        KubeVirt calls that what the scheduler calls it, where the pod is there before KubeVirt has
        looked at the claims.
        """
        return self.printable(name) in ("WaitingForVolumeBinding", "ErrorUnschedulable")

    def condition(self, name: str, kind: str) -> Object:
        """Return a condition of an instance."""
        found = self.get("virtualmachineinstances", name) or {}
        conditions = (found.get("status") or {}).get("conditions") or ()
        return next((each for each in conditions if each["type"] == kind), {})

    def migrated(self, name: str, phase: str = "Succeeded") -> None:
        """Wait until a migration has ended so."""

        def ended() -> bool:
            found = self.get("virtualmachineinstancemigrations", name) or {}
            return (found.get("status") or {}).get("phase") == phase

        self.wait(f"the migration {name} is not {phase}", ended)

    def summary(self) -> str:
        """What there is, for the message of a test that fails."""
        return self.plane.kubectl("get", "vm,vmi,vmim,pod,pvc", "-n", self.namespace, "-o", "wide")


def virtual_machine(name: str, *claims: str, **changes: Any) -> Object:
    """A small VirtualMachine on the pod network with these claims as its disks."""
    disks = [{"name": each, "disk": {"bus": "virtio"}} for each in claims]
    volumes = [{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in claims]
    domain = {
        "cpu": {"sockets": 2, "cores": 1, "threads": 1},
        "memory": {"guest": "1Gi"},
        "devices": {"disks": disks, "interfaces": [{"name": "default", "masquerade": {}}]},
    }
    spec = {
        "domain": domain | changes.pop("domain", {}),
        "networks": [{"name": "default", "pod": {}}],
        "volumes": volumes,
    }
    template = {"metadata": {"annotations": changes.pop("annotations", {})}, "spec": spec}
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": name},
        "spec": {"runStrategy": "Always", "template": template, **changes},
    }


def claim(name: str, size: str = "10Gi", mode: str = "ReadWriteMany", **spec: Any) -> Object:
    """A claim for a volume, of the default class unless another is named."""
    asked = {"accessModes": [mode], "resources": {"requests": {"storage": size}}}
    return {"metadata": {"name": name}, "spec": {**asked, "volumeMode": "Block", **spec}}


def migration(name: str, instance: str, notes: dict[str, str] | None = None) -> Object:
    """A request to migrate an instance."""
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstanceMigration",
        "metadata": {"name": name, "annotations": notes or {}},
        "spec": {"vmiName": instance},
    }


def audit_of(directory: Path) -> Audit:
    """What the operator asked of the cluster in a directory."""
    return Audit(directory, OPERATOR)


def new_bed(directory: Path, *, imports: bool = False) -> KubeVirtBed:
    """Start a cluster with KubeVirt in a directory of its own; ``stop_bed`` ends it.

    With ``imports`` it is as if CDI were installed too.
    """
    cache = Home.default().cache
    directory.mkdir(parents=True, exist_ok=True)
    flags = {name: [*value] for name, value in {**FLAGS, **PATIENCE}.items()}
    flags["kube-apiserver"] = [*flags.get("kube-apiserver", []), *audit_of(directory).flags]
    plane = throw_away(directory, locate(cache, None, Silent()), ALL, flags)
    kubevirt = KubeVirt(plane, locate_kubevirt(cache, Silent()), imports=imports)
    plane.start()
    kubevirt.start()
    return KubeVirtBed(kubevirt, Api(plane.kubeconfig))


def stop_bed(bed: KubeVirtBed) -> None:
    """End a cluster whose data nobody wants."""
    bed.api.close()
    bed.kubevirt.stop()
    discard(bed.plane)


def running_bed() -> KubeVirtBed:
    """The bed that the fixture ``kubevirt_cluster`` started in this process."""
    return _RUNNING[-1]


@contextmanager
def shared_bed(directory: Path) -> Iterator[KubeVirtBed]:
    """The bed that all workers of a run share."""
    directory.mkdir(parents=True, exist_ok=True)
    mine, lock = directory / f"user-{os.getpid()}", directory / "lock"
    with holding(lock, "start", on_wait=_patiently):
        mine.touch()
        bed = new_bed(directory / "cluster")
    _RUNNING.append(bed)
    try:
        yield bed
    finally:
        _RUNNING.remove(bed)
        with holding(lock, "stop", on_wait=_patiently):
            mine.unlink()
            if not list(directory.glob("user-*")):
                stop_bed(bed)
            bed.api.close()


@contextmanager
def fresh_namespace(bed: KubeVirtBed) -> Iterator[KubeVirtBed]:
    """The bed, in a namespace of a test's own, which goes with all that is in it."""
    name = f"test-{uuid.uuid4().hex[:10]}"
    bed.api.create_namespace(name)
    yield KubeVirtBed(bed.kubevirt, bed.api, name)
    for kind in OURS:
        _let_go(bed.api, kind.format(name))
    bed.delete("namespaces", name, "")


def _let_go(api: Api, where: str) -> None:
    """Take the finalizers off what is left somewhere, whose operator has ended.

    Their namespace would wait for them, and the cluster look through it again and again: twenty of
    those keep half a core busy.
    """
    for each in _listed(api, where):
        if each["metadata"].get("finalizers"):
            name, bare = each["metadata"]["name"], {"metadata": {"finalizers": None}}
            try:
                api.call("PATCH", f"{where}/{name}", bare, merge=True)
            except Refused as refused:
                if refused.code != GONE:
                    raise


def _listed(api: Api, where: str) -> list[Object]:
    """Return the objects there are; none of a kind that the cluster has not."""
    deadline = time.monotonic() + LONG_SECONDS
    while True:
        try:
            found: list[Object] = api.call("GET", where)["items"]
        except Refused as refused:
            if refused.code == GONE:
                return []
            if refused.code != NOT_YET or time.monotonic() > deadline:
                raise
            time.sleep(0.2)  # the kind was installed this moment
        else:
            return found


def _patiently() -> None:
    """Wait for whoever is at it."""
