"""A home cluster without KubeVirt, and a far one that has it, for Machines declared at home."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from api import Api
from e2e.kubevirt.machines import MachineStage
from far_cluster import Wire, far_kubeconfig, grant, secret, wire_to
from kubevirt_bed import KubeVirtBed
from novacron.localcluster.controlplane import ControlPlane
from operators import RunningOperator

__all__ = ["FarStage", "far_staged"]

Object = dict[str, Any]

CONFIG = "vitistack.io/kubevirt-config"


@dataclass(frozen=True)
class _Home(KubeVirtBed):
    """A namespace of a cluster that has no KubeVirt."""

    home: ControlPlane | None = None

    @property
    def plane(self) -> ControlPlane:
        """The cluster."""
        assert self.home is not None
        return self.home

    def summary(self) -> str:
        """What there is, for the message of a test that fails."""
        return self.plane.kubectl("get", "machines", "-n", self.namespace, "-o", "wide")


@dataclass(frozen=True)
class FarStage(MachineStage):
    """Machines at home (``bed``) that are made in a far cluster (``far``), by a wire."""

    far: KubeVirtBed
    wire: Wire

    def place(self, name: str, config: str = "far", **spec: Any) -> Object:
        """Declare a small Machine that is to be made in the cluster of a Secret."""
        return self.apply(
            {
                "apiVersion": "vitistack.io/v1alpha1",
                "kind": "Machine",
                "metadata": {"name": name, "annotations": {CONFIG: config}},
                "spec": {"template": "small", **spec},
            }
        )

    def keep(self, name: str, **entries: str) -> None:
        """Have a Secret with these entries at home."""
        body = secret(name, **entries)
        if self.bed.get("secrets", name) is None:
            self.bed.create("secrets", body)
        else:
            self.bed.patch("secrets", name, {"data": body["data"]})

    def kubeconfig(self, account: str = "novacron") -> str:
        """Return what says how to reach the far cluster."""
        return far_kubeconfig(self.far, self.wire, account)

    def in_reach(self) -> "FarStage":
        """Have the Secret ``far`` lead to the far cluster."""
        self.keep("far", kubeconfig=self.kubeconfig())
        return self

    def token(self) -> str:
        """Return the secret by which the far cluster knows the operator."""
        document = json.loads(self.kubeconfig())
        found: str = document["users"][0]["user"]["token"]
        return found


@contextmanager
def far_staged(
    home: ControlPlane, api: Api, far: KubeVirtBed, directory: Path, **settings: Any
) -> Iterator[FarStage]:
    """Have an operator at home look after the Machines of a namespace that both clusters have."""
    api.create_namespace(far.namespace)
    grant(far)
    bed = _Home(far.kubevirt, api, far.namespace, home=home)
    flags = ("--no-leader-elect", "--families=viti")
    operator = RunningOperator(home, directory, [far.namespace], **{"flags": flags, **settings})
    with wire_to(far.plane) as wire:
        stage = FarStage(bed, operator.start(), replace(far), wire)
        try:
            yield stage
        finally:
            operator.stop()
