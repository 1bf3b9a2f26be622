"""Definitions: names, versions, subresources, columns, conversion, and YAML that cannot mislead."""

import pytest
import yaml

from novacron.crd import AGE, Column, CustomResource, Model, Scale, kind
from novacron.crd.manifest import ConversionWebhook, manifest, to_yaml


class OldSpec(Model):
    size: int


class NewSpec(Model):
    replicas: int = 1


@kind(group="test.io", version="v1", name="Gadget", storage=False, status=False)
class OldGadget(CustomResource):
    """A gadget as it was."""

    spec: OldSpec


@kind(
    group="test.io",
    version="v2",
    name="Gadget",
    scale=Scale(selector_path=".status.selector"),
    columns=(
        Column("Size", ".spec.replicas", "integer", 1, "How many."),
        AGE,
    ),
)
class Gadget(CustomResource):
    """A gadget."""

    spec: NewSpec


@kind(
    group="test.io",
    version="v1",
    plural="mice",
    singular="mouse",
    short=("ms",),
    categories=("all",),
    scope="Cluster",
    columns=(),
)
class Mouse(CustomResource):
    spec: NewSpec = NewSpec()


def test_names_follow_the_class_unless_they_are_given() -> None:
    """Plurals are English; a few kinds have to say theirs."""
    assert manifest(Gadget)["metadata"] == {"name": "gadgets.test.io"}
    spec = manifest(Mouse)["spec"]
    assert spec["scope"] == "Cluster"
    assert spec["names"] == {
        "kind": "Mouse",
        "listKind": "MouseList",
        "plural": "mice",
        "singular": "mouse",
        "shortNames": ["ms"],
        "categories": ["all"],
    }


def test_every_version_has_its_own_schema_and_one_is_stored() -> None:
    """Several versions are served at once from one stored form."""
    newer, older = manifest(Gadget, OldGadget)["spec"]["versions"]
    assert (newer["name"], newer["storage"], newer["served"]) == ("v2", True, True)
    assert (older["name"], older["storage"], older["served"]) == ("v1", False, True)
    schema = older["schema"]["openAPIV3Schema"]
    assert schema["description"] == "A gadget as it was."
    assert list(schema["properties"]["spec"]["properties"]) == ["size"]
    assert schema["required"] == ["spec"]


def test_metadata_is_left_to_the_server() -> None:
    """A schema may say nothing of metadata but that it is an object."""
    schema = manifest(Mouse)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert schema["properties"]["metadata"] == {"type": "object"}
    assert "default" not in schema["properties"]["apiVersion"]


def test_subresources_are_there_when_asked_for() -> None:
    """Status is the rule, scale the exception."""
    newer, older = manifest(Gadget, OldGadget)["spec"]["versions"]
    assert newer["subresources"] == {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        },
    }
    assert "subresources" not in older
    mouse = manifest(Mouse)["spec"]["versions"][0]
    assert mouse["subresources"] == {"status": {}}
    assert "additionalPrinterColumns" not in mouse


def test_columns_carry_priority_and_description() -> None:
    """Priority above 0 keeps a column for -o wide."""
    (version,) = manifest(Gadget)["spec"]["versions"]
    assert version["additionalPrinterColumns"] == [
        {
            "name": "Size",
            "type": "integer",
            "jsonPath": ".spec.replicas",
            "priority": 1,
            "description": "How many.",
        },
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]


def test_a_conversion_webhook_is_written_in_kubernetes_own_words() -> None:
    """The certificate is filled in by whoever serves the webhook."""
    config = {"service": {"namespace": "system", "name": "operator", "path": "/convert"}}
    written = manifest(Gadget, OldGadget, conversion=ConversionWebhook(config))
    assert written["spec"]["conversion"] == {
        "strategy": "Webhook",
        "webhook": {"clientConfig": config, "conversionReviewVersions": ["v1"]},
    }
    assert "conversion" not in manifest(Gadget, OldGadget)["spec"]


AMBIGUOUS = ["y", "N", "yes", "No", "on", "OFF", "true", "Null", "~", "", "1", "1e3", "0x1f"]
AMBIGUOUS += ["0o17", "1_000", "12:30", ".5", "-", "- a", "2024-01-20", "=", "<<", "a: b", "a #b"]
AMBIGUOUS += ["#a", " a"]


@pytest.mark.parametrize("text", AMBIGUOUS)
def test_text_that_some_reader_takes_for_something_else_is_quoted(text) -> None:
    """Go reads a bare y as true where Python reads text; quoted, all agree. Keys too."""
    written = to_yaml({"value": text})
    assert written in (f'value: "{text}"\n', f"value: '{text}'\n")
    assert yaml.safe_load(to_yaml({text: 1})) == {text: 1}
    assert to_yaml({text: 1}).lstrip("? ")[0] in "\"'"


@pytest.mark.parametrize("text", ["plain", "two words", "novacron.io/v1", "it's", "a\nb\n"])
def test_plain_text_stays_readable_and_comes_back_the_same(text) -> None:
    """Quotes everywhere would hide what matters."""
    written = to_yaml({"value": text})
    assert '"' not in written
    assert yaml.safe_load(written) == {"value": text}


def test_equal_parts_are_written_out_each_time() -> None:
    """Anchors and aliases save bytes and cost readers."""
    shared = {"a": "b"}
    assert "&" not in to_yaml({"x": shared, "y": shared})


def test_several_documents_are_set_apart() -> None:
    """One stream may hold a whole family."""
    written = to_yaml({"a": 1}, {"b": 2})
    assert list(yaml.safe_load_all(written)) == [{"a": 1}, {"b": 2}]
