"""What no structural schema can say is refused when it is written, by the name of the field."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field, create_model

from novacron.crd import CustomResource, Model, kind
from novacron.crd.manifest import manifest
from novacron.crd.schema import SchemaError, structural_schema


class Leaf(Model):
    name: str


class Other(Model):
    size: int


class Tree(Model):
    children: list["Tree"] = []


class Tagged(Model):
    type: Literal["tagged"]


class Marked(Model):
    type: Literal["marked"]


REFUSED = {
    "a union of values": (int | str, "a union"),
    "a union of models": (Leaf | Other, "a union"),
    "a discriminated union": (Annotated[Tagged | Marked, Field(discriminator="type")], "a union"),
    "a decimal": (Decimal, "a union"),
    "a tuple": (tuple[int, str], "a tuple"),
    "a set": (set[str], "a set"),
    "anything": (Any, "has no type"),
    "a map of anything": (dict[str, Any], "holds anything"),
    "mixed literals": (Literal["a", 1], "has no type"),
    "a function": (Callable[[], int], "no schema can describe"),
    "a duration": (timedelta, "format duration"),
    "bytes": (bytes, "format binary"),
    "constrained keys": (dict[Annotated[str, Field(max_length=3)], str], "keys of a map"),
    "a fractional bound": (Annotated[float, Field(ge=0.1)], "minimum 0.1 does not hold"),
    "an option without a default": (str | None, "'= None'"),
}


@pytest.mark.parametrize(("annotation", "why"), REFUSED.values(), ids=REFUSED)
def test_a_type_without_a_structural_schema_is_refused_by_name(annotation, why) -> None:
    """The server would refuse it too, but without naming the line to mend."""
    inner = create_model("Inner", __base__=Model, it=(annotation, ...))
    model = create_model("Outer", __base__=Model, spec=(list[inner], ...))
    with pytest.raises(SchemaError) as refusal:
        structural_schema(model)
    assert str(refusal.value).startswith("Outer.spec[].it")
    assert why in str(refusal.value)


def test_recursion_is_refused_where_it_closes() -> None:
    """A schema that contains itself has no end when written out."""
    model = create_model("Outer", __base__=Model, spec=(Tree, ...))
    with pytest.raises(SchemaError, match=r"^Outer\.spec\.children\[\]: Tree contains itself"):
        structural_schema(model)


def test_keywords_that_kubernetes_does_not_know_are_refused() -> None:
    """An unknown keyword would be dropped by the server and check nothing."""
    model = create_model(
        "Outer", __base__=Model, it=(Annotated[str, Field(json_schema_extra={"if": {}})], ...)
    )
    with pytest.raises(SchemaError, match=r"^Outer\.it: a structural schema has no if"):
        structural_schema(model)


def test_a_default_that_is_no_json_is_refused() -> None:
    """Leaving it out would make Python and the server disagree."""
    model = create_model("Outer", __base__=Model, it=(str, Field(default=object())))
    with pytest.raises(SchemaError, match="not JSON serializable"):
        structural_schema(model)


@kind(group="test.io", version="v1", name="Gadget")
class GadgetV1(CustomResource):
    pass


@kind(group="test.io", version="v2", name="Gadget", storage=True)
class GadgetV2(CustomResource):
    pass


@kind(group="test.io", version="v3", name="Gadget", short=("gd",), storage=False)
class GadgetV3(CustomResource):
    pass


def test_two_stored_versions_are_refused() -> None:
    """Objects lie in etcd in one version."""
    with pytest.raises(SchemaError, match="one version must have storage, not 2"):
        manifest(GadgetV1, GadgetV2)


def test_versions_with_other_names_are_refused() -> None:
    """Names belong to the kind, not to a version."""
    with pytest.raises(SchemaError, match="v3 has other names"):
        manifest(GadgetV1, GadgetV3)
