"""What every mapping of a Machine comes to as KubeVirt's VirtualMachine, whole, as reviewed.

Each file has the Machine, with what it refers to, and the VirtualMachine. ``python
tests/golden/test_kubevirt.py`` writes the latter anew; the difference is for a person to read.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml

from novacron.core.surroundings import Reference
from novacron.drivers.kubevirt.convert import virtual_machine
from novacron.families.viti.translate import MachineKind

pytestmark = pytest.mark.full

Object = dict[str, Any]
EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("5[0-6]-machine-*.yaml"))
OWN = sorted((Path(__file__).parent / "kubevirt").glob("*.machine.yaml"))
UID = "0b0e9f5c-0000-4000-8000-000000000001"
PLURALS = {"NetworkConfiguration": "networkconfigurations", "MachineClass": "machineclasses"}
# Our own record of the template, which says the same once more.
RECORDS = ("novacron.io/applied", "novacron.io/recipe")


class Beside:
    """The other objects of a file."""

    def __init__(self, objects: list[Object]) -> None:
        self.objects = objects

    def get(self, reference: Reference) -> Object | None:
        """Find one by its name."""
        return next(
            (
                each
                for each in self.every(reference.plural)
                if each["metadata"]["name"] == reference.name
            ),
            None,
        )

    def every(self, plural: str) -> list[Object]:
        """Find all of a kind."""
        return [each for each in self.objects if PLURALS.get(each["kind"]) == plural]


def golden(file: Path) -> Path:
    """Return where the VirtualMachine of a file is."""
    name = file.name.removesuffix(".yaml").removesuffix(".machine")
    return Path(__file__).parent / "kubevirt" / f"{name}.vm.yaml"


def made_of(file: Path) -> Object:
    """Return the VirtualMachine that is made of a file's Machine."""
    objects: list[Object] = [each for each in yaml.safe_load_all(file.read_text()) if each]
    for number, each in enumerate(objects):
        each["metadata"] |= {"uid": f"{UID[:-1]}{number}", "generation": 1}
    obj = next(each for each in objects if each["kind"] == "Machine")
    obj["metadata"] |= {"uid": UID, "namespace": "default"}
    vm = virtual_machine(MachineKind().amid(Beside(objects)).machine(obj).plan(), owned=True)
    for name in RECORDS:
        del vm["metadata"]["annotations"][name]
    return vm


@pytest.mark.parametrize("file", [*EXAMPLES, *OWN], ids=lambda file: golden(file).stem)
def test_a_machine_becomes_the_virtual_machine_that_was_reviewed(file: Path) -> None:
    assert made_of(file) == yaml.safe_load(golden(file).read_text())


if __name__ == "__main__":
    for each in (*EXAMPLES, *OWN):
        golden(each).write_text(yaml.safe_dump(made_of(each), sort_keys=False))
