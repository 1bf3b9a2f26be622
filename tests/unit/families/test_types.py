"""The types of novacron.io hold what the specification writes, and say the same as their schema."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel, ValidationError

from novacron.core.quantity import mib, parse_duration
from novacron.crd.schema import structural_schema
from novacron.families.novacron.kinds import RESOURCES, Host, VirtualMachine
from novacron.families.novacron.simulation_types import SimulatedDelays

SPECIFIED = Path(__file__).parents[2] / "golden" / "spec-000-virtualmachine.yaml"

SMALLEST = {
    "template": {
        "spec": {
            "resources": {"cpu": 1, "memory": "512Mi"},
            "image": {"source": "builtin://tiny"},
        }
    }
}
SIMULATED = {
    "driver": "simulation",
    "simulation": {"capacity": {"cpu": 8, "memory": "16Gi", "disk": "1Ti"}},
}


@pytest.fixture
def specified() -> dict[str, Any]:
    """The manifest of the specification."""
    loaded: dict[str, Any] = yaml.safe_load(SPECIFIED.read_text(encoding="utf-8"))
    return loaded


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def contains(whole: Any, part: Any) -> bool:
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(
            name in whole and contains(whole[name], item) for name, item in part.items()
        )
    if isinstance(part, list):
        return len(whole) == len(part) and all(map(contains, whole, part))
    return bool(whole == part)


def test_every_field_of_the_specification_is_kept(specified) -> None:
    """Parsed and written again, its manifest has lost nothing, status included."""
    written = VirtualMachine.model_validate(specified).dump()
    assert contains(written, without_nulls(specified))


def test_the_specification_reads_as_values(specified) -> None:
    """A few of its fields, by their Python names."""
    machine = VirtualMachine.model_validate(specified)
    template = machine.spec.template.spec
    assert template.networks[1].ipv4 is not None
    assert template.networks[1].ipv4.address == "10.0.1.10/24"
    assert template.lifecycle is not None
    assert template.lifecycle.pre_stop is not None
    assert template.lifecycle.pre_stop.exec is not None
    assert template.lifecycle.pre_stop.exec.timeout_seconds == 300
    assert machine.status is not None
    assert machine.status.phase == "Running"
    assert machine.status.migration is not None
    assert machine.status.migration.start_time is None


def test_defaults_are_those_of_the_specification() -> None:
    """Its webhook sets updateStrategy and migrationPolicy; ours are in the schema and here."""
    spec = VirtualMachine.model_validate({"spec": SMALLEST}).dump()["spec"]
    assert spec["running"] is True
    assert spec["migrationPolicy"] == {
        "allowLiveMigration": True,
        "compression": True,
        "encrypted": False,
    }
    assert spec["updateStrategy"] == {"type": "RollingUpdate"}
    assert spec["template"]["spec"]["resources"]["disk"] == "10Gi"


@pytest.mark.parametrize("missing", ["resources", "image"])
def test_a_machine_needs_resources_and_an_image(missing) -> None:
    """Nothing sensible can be assumed for either."""
    inner = {name: v for name, v in SMALLEST["template"]["spec"].items() if name != missing}
    with pytest.raises(ValidationError, match=missing):
        VirtualMachine.model_validate({"spec": {"template": {"spec": inner}}})


def test_a_host_has_defaults_for_all_but_its_capacity() -> None:
    """A simulated host is one line of driver and three of capacity."""
    host = Host.model_validate({"spec": SIMULATED})
    assert host.spec.overcommit.cpu == 1
    assert host.spec.simulation is not None
    assert host.spec.simulation.usage.memory == 0.5
    assert parse_duration(host.spec.simulation.delays.create).total_seconds() == 0


def test_defaults_in_the_types_can_be_computed_with() -> None:
    """A default that the core cannot read would fail far from here."""
    spec = VirtualMachine.model_validate({"spec": SMALLEST}).spec
    assert mib(spec.template.spec.resources.disk) == 10 * 1024
    assert all(parse_duration(delay) is not None for delay in SimulatedDelays().dump().values())


def fields_without_words(model: type[BaseModel], path: str) -> list[str]:
    def walk(schema: dict[str, Any], here: str) -> list[str]:
        bare = []
        for name, field in schema.get("properties", {}).items():
            bare += [] if field.get("description") else [f"{here}.{name}"]
            bare += walk(field, f"{here}.{name}")
        return bare + (walk(schema["items"], f"{here}[]") if "items" in schema else [])

    schema = structural_schema(model)
    for everywhere in ("apiVersion", "kind", "metadata"):
        del schema["properties"][everywhere]
    return walk(schema, path)


@pytest.mark.parametrize("model", [version for kind in RESOURCES for version in kind])
def test_every_field_is_explained(model) -> None:
    """kubectl explain and the reference page have nothing to say that is not said in the types."""
    assert fields_without_words(model, model.__name__) == []


def test_kinds_have_the_names_that_users_type() -> None:
    """Short names, scope and category are part of the interface."""
    machine, host = VirtualMachine.__kind__, Host.__kind__
    assert machine.full_name == "virtualmachines.novacron.io"
    assert machine.short_names == ("vm", "vms")
    assert machine.namespaced
    assert host.full_name == "hosts.novacron.io"
    assert not host.namespaced
    assert machine.categories == host.categories == ("novacron",)


@pytest.mark.parametrize("kind", [Host, VirtualMachine])
def test_no_default_stands_within_a_list(kind: type[BaseModel]) -> None:
    """Argo CD compares lists as a whole: what the server fills in there is a difference for ever.

    Let the field be absent instead, and say in its description what that means.
    """

    def defaults(schema: dict[str, Any], path: str, *, listed: bool) -> list[str]:
        found = [path] if listed and "default" in schema else []
        for name, field in schema.get("properties", {}).items():
            found += defaults(field, f"{path}.{name}", listed=listed)
        if "items" in schema:
            found += defaults(schema["items"], f"{path}[]", listed=True)
        return found

    declared = structural_schema(kind)["properties"]["spec"]
    assert defaults(declared, "spec", listed=False) == []
