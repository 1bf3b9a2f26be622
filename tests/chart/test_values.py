"""Values: what is wrong is refused with a sentence, and what is there is documented."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from helm import CHART, REPOSITORY, Helm, HelmFailed
from novacron import __version__
from novacron.app.registry import FAMILIES

Object = dict[str, Any]

VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
GUIDE = REPOSITORY / "docs/guide/install.md"
ROW = re.compile(r"^\| `([A-Za-z.]+)` \| `([^`]*)` \|", re.MULTILINE)


def leaves(values: Object, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Return every value that can be set, by its path."""
    for name, value in values.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def test_the_chart_passes_the_strictest_lint(helm: Helm) -> None:
    """Warnings are what users will ask about."""
    assert "0 chart(s) failed" in helm.run("lint", "--strict", str(CHART))


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("replica=1", "additional properties 'replica' not allowed"),
        ("families.novacorn=true", "at '/families': additional properties 'novacorn' not allowed"),
        ("image.tags=1", "at '/image': additional properties 'tags' not allowed"),
        ("replicas=0", "at '/replicas': minimum: got 0, want 1"),
        ("replicas=many", "at '/replicas': got string, want integer"),
        ("log.level=loud", "at '/log/level': value must be one of 'debug', 'info'"),
        ("reconcileInterval=5", "at '/reconcileInterval': got number, want string"),
        ("reconcileInterval=soon", "at '/reconcileInterval': 'soon' does not match pattern"),
        ("watchNamespaces={Bad_Name}", "at '/watchNamespaces/0': 'Bad_Name' does not match"),
    ],
)
@pytest.mark.parametrize("command", ["lint", "template"])
def test_a_typo_is_refused_and_named(helm: Helm, command: str, wrong: str, told: str) -> None:
    """A value that nothing reads would be believed to be set."""
    with pytest.raises(HelmFailed) as refused:
        helm.run(command, str(CHART), "--set", wrong)
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("families.novacron=false", "families: switch at least one on"),
        ("shards=3", "name a volume that they share in simulation.volume"),
    ],
)
def test_values_that_contradict_each_other_are_refused(helm: Helm, wrong: str, told: str) -> None:
    """A schema looks at one value at a time; what remains is said when the chart is rendered."""
    with pytest.raises(HelmFailed, match=told):
        helm.template("--set", wrong)


def test_every_object_in_the_schema_is_closed_and_every_value_known_to_it() -> None:
    """A value that was forgotten in the schema could not be set at all."""

    def check(schema: Object, values: Object, path: str) -> None:
        assert schema["additionalProperties"] is False, path
        assert values.keys() == schema["properties"].keys() - {"global"}, path
        for name, value in values.items():
            inner = schema["properties"][name]
            if "properties" in inner:
                check(inner, value, f"{path}.{name}")

    check(SCHEMA, VALUES, "")


def test_every_family_can_be_switched_and_only_ours_is_on() -> None:
    """Others share short names such as vm."""
    assert VALUES["families"] == {name: name == "novacron" for name in FAMILIES}


def test_the_guide_names_every_value_with_its_default() -> None:
    """And no value that there is not."""
    documented = dict(ROW.findall(GUIDE.read_text()))
    assert documented == {path: written(value) for path, value in leaves(VALUES)}


def written(value: Any) -> str:
    """Write a value as the guide does."""
    return value if isinstance(value, str) else json.dumps(value)


def test_the_chart_installs_the_version_it_is_delivered_with() -> None:
    """Its appVersion is the image's tag."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == chart["version"] == __version__


def test_no_registry_is_named() -> None:
    """Where images come from is the cluster's business."""
    assert VALUES["image"]["repository"] == "novacron/novacron"
    for file in sorted(Path(CHART).rglob("*.yaml")):
        assert not re.search(r"image: .*\.(io|com|org)/", file.read_text()), file
