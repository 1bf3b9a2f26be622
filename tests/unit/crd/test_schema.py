"""What each way of writing a field becomes in a structural schema."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field, create_model

from novacron.crd import (
    Atomic,
    IntOrString,
    ListMap,
    ListSet,
    Model,
    PositiveQuantity,
    PreserveUnknown,
    Quantity,
    Rule,
)
from novacron.crd.schema import structural_schema

RULES = "x-kubernetes-validations"


class Colour(StrEnum):
    """What it looks like."""

    RED = "red"
    BLUE = "blue"
    AMBER = "amber"


class Part(Model):
    """A part."""

    __rules__ = (Rule("self.name != 'x'", "x is taken"),)

    name: str
    """What it is called."""
    count: int = 1


class Policy(Model):
    strict: bool = True
    note: str | None = None
    tags: list[str] = []


def field_schema(annotation: Any, default: Any = ...) -> dict[str, Any]:
    model = create_model("Thing", __base__=Model, it=(annotation, default))
    field: dict[str, Any] = structural_schema(model)["properties"]["it"]
    return field


PLAIN = {
    "text": (str, ..., {"type": "string"}),
    "whole number": (int, ..., {"type": "integer"}),
    "number": (float, ..., {"type": "number"}),
    "truth": (bool, False, {"type": "boolean", "default": False}),
    "time": (datetime, ..., {"type": "string", "format": "date-time"}),
    "one literal": (Literal["a"], ..., {"type": "string", "enum": ["a"]}),
    "literals": (Literal["b", "a"], "b", {"type": "string", "default": "b", "enum": ["b", "a"]}),
    "list": (list[str], [], {"type": "array", "items": {"type": "string"}}),
    "list default": (
        list[str],
        ["a"],
        {"type": "array", "default": ["a"], "items": {"type": "string"}},
    ),
    "variadic tuple": (tuple[str, ...], (), {"type": "array", "items": {"type": "string"}}),
    "map": (dict[str, int], {}, {"type": "object", "additionalProperties": {"type": "integer"}}),
    "bounds": (
        Annotated[int, Field(ge=1, le=9)],
        ...,
        {"type": "integer", "minimum": 1, "maximum": 9},
    ),
    "strict bounds": (
        Annotated[float, Field(gt=0, lt=1)],
        ...,
        {
            "type": "number",
            "minimum": 0,
            "exclusiveMinimum": True,
            "maximum": 1,
            "exclusiveMaximum": True,
        },
    ),
    "lengths": (
        Annotated[str, Field(min_length=1, max_length=9, pattern="^a")],
        ...,
        {"type": "string", "pattern": "^a", "minLength": 1, "maxLength": 9},
    ),
    "list lengths": (
        Annotated[list[int], Field(min_length=1, max_length=9)],
        ...,
        {"type": "array", "minItems": 1, "maxItems": 9, "items": {"type": "integer"}},
    ),
    "map length": (
        Annotated[dict[str, str], Field(max_length=9)],
        ...,
        {"type": "object", "maxProperties": 9, "additionalProperties": {"type": "string"}},
    ),
    "may be absent": (str | None, None, {"type": "string"}),
    "bounded and may be absent": (
        Annotated[int, Field(ge=1)] | None,
        None,
        {"type": "integer", "minimum": 1},
    ),
    "set list": (
        Annotated[list[str], ListSet()],
        ...,
        {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
    ),
    "atomic list that may be absent": (
        Annotated[list[str] | None, Atomic()],
        None,
        {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "atomic"},
    ),
    "atomic map": (
        Annotated[dict[str, str], Atomic()],
        ...,
        {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "x-kubernetes-map-type": "atomic",
        },
    ),
    "free form": (
        Annotated[dict[str, Any], PreserveUnknown()],
        ...,
        {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    ),
    "anything": (
        Annotated[Any, PreserveUnknown()],
        None,
        {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    ),
}


@pytest.mark.parametrize(("annotation", "default", "expected"), PLAIN.values(), ids=PLAIN)
def test_a_field_becomes_its_structural_schema(annotation, default, expected) -> None:
    """Each form of annotation has one known meaning."""
    assert field_schema(annotation, default) == expected


def test_an_enum_keeps_the_order_it_was_written_in() -> None:
    """A sorted enum would make a diff of every renamed member."""
    written = field_schema(Colour, Colour.AMBER)
    assert written["enum"] == ["red", "blue", "amber"]
    assert written["default"] == "amber"
    assert written["description"] == "What it looks like."


def test_int_or_string_is_the_pair_that_kubernetes_knows() -> None:
    """The only union a structural schema may hold."""
    written = field_schema(IntOrString, 1)
    assert written["anyOf"] == [{"type": "integer"}, {"type": "string"}]
    assert written["x-kubernetes-int-or-string"] is True
    assert written["default"] == 1
    assert "type" not in written


def test_quantities_say_what_they_accept() -> None:
    """Plain ones by pattern; positive ones by a rule with a sentence, and no pattern beside it."""
    assert field_schema(Quantity)["pattern"].startswith("^[+-]?")
    positive = field_schema(PositiveQuantity | None, None)
    assert "pattern" not in positive
    assert "above zero" in positive[RULES][0]["message"]


def test_fields_are_required_unless_they_have_a_default() -> None:
    """The schema asks for exactly what the type asks for."""
    assert structural_schema(Part)["required"] == ["name"]
    assert "required" not in structural_schema(Policy)


def test_descriptions_come_from_docstrings_and_the_field_wins() -> None:
    """What is said nearest to the field is about the field."""

    class Whole(Model):
        """The whole."""

        part: Part
        """Its only part."""
        other: Annotated[Part, Field(description="Another part.")]
        bare: Part

    written = structural_schema(Whole)
    assert written["description"] == "The whole."
    parts = written["properties"]
    assert parts["part"]["description"] == "Its only part."
    assert parts["other"]["description"] == "Another part."
    assert parts["bare"]["description"] == "A part."
    assert parts["bare"]["properties"]["name"]["description"] == "What it is called."


def test_names_are_camel_case_unless_they_say_otherwise() -> None:
    """JSON's habit, with a way out for words such as vmID."""

    class Named(Model):
        node_name: str
        vm_id: Annotated[str, Field(alias="vmID")]

    assert list(structural_schema(Named)["properties"]) == ["nodeName", "vmID"]


def test_rules_of_field_and_type_are_joined() -> None:
    """A rule on the field must not silently switch off the rules of its type."""
    written = field_schema(Annotated[Part | None, Rule("true", "outer", ".name")], None)
    assert [rule["message"] for rule in written[RULES]] == ["x is taken", "outer"]
    assert written[RULES][1]["fieldPath"] == ".name"


def test_rules_of_a_model_are_added_to_those_of_its_bases() -> None:
    """A subclass adds to what is asked; it cannot take it back by accident."""

    class Special(Part):
        __rules__ = (Rule("true", "special", reason="FieldValueForbidden"),)

    rules = structural_schema(Special)[RULES]
    assert [rule["message"] for rule in rules] == ["x is taken", "special"]
    assert rules[1]["reason"] == "FieldValueForbidden"


def test_several_rules_on_one_field_are_all_kept() -> None:
    """Markers add; none replaces another."""
    written = field_schema(Annotated[str, Rule("a", "first"), Rule("b", "second")])
    assert [rule["rule"] for rule in written[RULES]] == ["a", "b"]


def test_rules_on_items_stay_on_items() -> None:
    """A list of ruled strings asks of each string."""
    written = field_schema(list[Annotated[str, Rule("isIP(self)", "an address")]])
    assert RULES not in written
    assert written["items"][RULES][0]["rule"] == "isIP(self)"


def test_a_list_map_names_its_keys() -> None:
    """Server-side apply merges items by these."""
    written = field_schema(Annotated[list[Part], ListMap("name"), Field(max_length=3)], [])
    assert written["x-kubernetes-list-type"] == "map"
    assert written["x-kubernetes-list-map-keys"] == ["name"]
    assert written["maxItems"] == 3


def test_a_default_object_is_written_out_without_what_is_absent() -> None:
    """Users read in the schema what they get; empty values would only fill every object."""
    assert field_schema(Policy, Policy())["default"] == {"strict": True}
    assert field_schema(Policy, Policy(tags=["a"]))["default"] == {"strict": True, "tags": ["a"]}


def test_a_default_made_by_a_function_is_carried_too() -> None:
    """A factory is only a way of writing a default."""
    written = field_schema(Policy, Field(default_factory=Policy))
    assert written["default"] == {"strict": True}


def test_the_same_type_twice_is_not_recursion() -> None:
    """Two fields of one type are inlined twice."""

    class Pair(Model):
        left: Part
        right: list[Part] = []

    parts = structural_schema(Pair)["properties"]
    assert parts["left"] == parts["right"]["items"]


def test_typed_objects_may_keep_unknown_fields_as_well() -> None:
    """Known fields are still checked, the rest is kept."""
    written = field_schema(Annotated[Part, PreserveUnknown()])
    assert written["x-kubernetes-preserve-unknown-fields"] is True
    assert "name" in written["properties"]
