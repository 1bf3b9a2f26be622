"""Machines of the Viti Stack on a real KubeVirt, with an operator that has exactly its rights."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from kubevirt_bed import GROUPS, KubeVirtBed
from operators import RunningOperator

__all__ = ["MachineStage", "condition", "staged"]

Object = dict[str, Any]

VITI = "/apis/vitistack.io/v1alpha1"
GROUPS |= {"machines": VITI, "networkconfigurations": VITI, "machineclasses": VITI}


def condition(obj: Object, name: str) -> Object:
    """Return what a Machine says under a name."""
    claims: list[Object] = (obj.get("status") or {}).get("conditions") or []
    return next((each for each in claims if each["type"] == name), {})


@dataclass(frozen=True)
class MachineStage:
    """A namespace of a KubeVirt cluster and an operator that looks after Machines in it."""

    bed: KubeVirtBed
    operator: RunningOperator

    def declare(self, name: str, **spec: Any) -> Object:
        """Declare a Machine, a small one unless the spec says otherwise."""
        return self.apply(
            {
                "apiVersion": "vitistack.io/v1alpha1",
                "kind": "Machine",
                "metadata": {"name": name},
                "spec": {"template": "small", **spec},
            }
        )

    def apply(self, body: Object) -> Object:
        """Create an object in the stage's namespace."""
        plural = f"{body['kind'].lower()}s".replace("classs", "classes")
        metadata = {**body["metadata"], "namespace": self.bed.namespace}
        return self.bed.create(plural, {**body, "metadata": metadata})

    def apply_file(self, path: Path) -> list[Object]:
        """Create all objects of a file."""
        return [self.apply(each) for each in yaml.safe_load_all(path.read_text()) if each]

    def network(self, name: str, **spec: Any) -> Object:
        """Declare a NetworkConfiguration."""
        return self.apply(
            {
                "apiVersion": "vitistack.io/v1alpha1",
                "kind": "NetworkConfiguration",
                "metadata": {"name": name},
                "spec": spec,
            }
        )

    def change(self, name: str, **spec: Any) -> Object:
        """Change a Machine."""
        return self.bed.patch("machines", name, {"spec": spec})

    def machine(self, name: str) -> Object | None:
        """Return a Machine as it is."""
        return self.bed.get("machines", name)

    def until(self, name: str, claim: Callable[[Object], object]) -> Object:
        """Wait until a claim holds of a Machine, and return it."""

        def look() -> Object | None:
            found = self.machine(name)
            return found if found and claim(found) else None

        def said() -> str:
            found = self.machine(name) or {}
            status = yaml.safe_dump(found.get("status"))
            return f"{name} is {status}; the operator said:\n{self.operator.log[-4000:]}"

        try:
            there: Object = self.bed.wait(name, look)
        except AssertionError as late:
            raise AssertionError(said()) from late
        return there

    def until_running(self, name: str) -> Object:
        """Wait until a Machine is Running and Ready."""
        return self.until(
            name,
            lambda obj: (
                obj["status"]["phase"] == "Running"
                and condition(obj, "Ready").get("status") == "True"
                if obj.get("status")
                else False
            ),
        )

    def until_told(self, name: str, kind: str, status: str, reason: str) -> Object:
        """Wait until a Machine has a condition."""

        def told(obj: Object) -> bool:
            found = condition(obj, kind)
            return (found.get("status"), found.get("reason")) == (status, reason)

        return self.until(name, told)

    def until_gone(self, name: str) -> None:
        """Wait until a Machine is no more."""
        self.bed.wait(f"{name} is not gone", lambda: self.machine(name) is None)


@contextmanager
def staged(bed: KubeVirtBed, directory: Path, **settings: Any) -> Iterator[MachineStage]:
    """Have an operator look after the Machines of a namespace."""
    flags = ("--no-leader-elect", "--families=viti")
    operator = RunningOperator(
        bed.plane, directory, [bed.namespace], **{"flags": flags, **settings}
    ).start()
    try:
        yield MachineStage(bed, operator)
    finally:
        operator.stop()
