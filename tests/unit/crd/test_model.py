"""Objects are parsed strictly, are frozen, and are written without nulls."""

from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from novacron.crd import CustomResource, IntOrString, KindInfo, Model, ObjectMeta, Quantity, kind


class Part(Model):
    node_name: str | None = None
    size: Quantity = "1Gi"
    share: IntOrString = 1
    seen_at: datetime | None = None


@kind(group="test.io", version="v1", short=("gd",), scope="Cluster")
class Gadget(CustomResource):
    spec: Part = Part()


def test_json_names_and_python_names_are_both_understood() -> None:
    """JSON comes from the server, Python names from our own code."""
    assert Part.model_validate({"nodeName": "a"}) == Part(node_name="a")


def test_unknown_fields_are_refused() -> None:
    """A misspelt field must not pass as an absent one."""
    with pytest.raises(ValidationError, match="nodename"):
        Part.model_validate({"nodename": "a"})


def test_values_are_frozen() -> None:
    """What was read is shared; nobody may change it under another's feet."""
    with pytest.raises(ValidationError, match="frozen"):
        Part().node_name = "a"


def test_absent_fields_are_not_written() -> None:
    """The schema knows no null."""
    seen = datetime(2026, 1, 2, tzinfo=UTC)
    written = Part(seen_at=seen).dump()
    assert written == {"size": "1Gi", "share": 1, "seenAt": "2026-01-02T00:00:00Z"}


@pytest.mark.parametrize(("given", "kept"), [(4, "4"), ("4", "4"), ("8Gi", "8Gi")])
def test_quantities_are_text_however_they_were_written(given, kept) -> None:
    """Whoever computes with one parses text and nothing else."""
    assert Part.model_validate({"size": given}).size == kept


@pytest.mark.parametrize("given", [True, 1.5, None, []])
def test_quantities_of_other_types_are_refused(given) -> None:
    """The server admits integers and strings; so do we."""
    with pytest.raises(ValidationError):
        Part.model_validate({"size": given})


@pytest.mark.parametrize("given", [3, "25%"])
def test_int_or_string_stays_what_it_was(given) -> None:
    """3 is a count and "3" a text."""
    assert Part(share=given).share == given


def test_metadata_keeps_what_we_read_and_ignores_the_rest() -> None:
    """managedFields and the like come with every object."""
    gadget = Gadget.model_validate(
        {
            "apiVersion": "test.io/v1",
            "kind": "Gadget",
            "metadata": {
                "name": "a",
                "uid": "u",
                "managedFields": [{}],
                "creationTimestamp": "2026-01-02T03:04:05Z",
            },
        }
    )
    assert gadget.metadata.name == "a"
    assert gadget.metadata.creation_timestamp == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert gadget.metadata.labels == {}


def test_a_new_object_is_written_with_its_own_kind() -> None:
    """Nobody has to repeat what the class knows."""
    written = Gadget(metadata=ObjectMeta(name="a")).dump()
    assert written == {
        "apiVersion": "test.io/v1",
        "kind": "Gadget",
        "metadata": {"name": "a"},
        "spec": {"size": "1Gi", "share": 1},
    }


def test_a_kind_carries_its_names() -> None:
    """Controllers build the paths of the API from these."""
    info = Gadget.__kind__
    assert info == KindInfo(
        group="test.io",
        version="v1",
        kind="Gadget",
        plural="gadgets",
        singular="gadget",
        scope="Cluster",
        short_names=("gd",),
        columns=info.columns,
    )
    assert not info.namespaced
    assert info.api_version == "test.io/v1"
    assert info.full_name == "gadgets.test.io"
