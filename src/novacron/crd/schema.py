"""Turns a model into a structural schema, the only kind that API servers accept.

pydantic writes JSON Schema; here references are put in place, nulls become absence, and whatever
a structural schema cannot say is refused with the path of the field that says it.
"""

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind, NoDefault

from novacron.crd.markers import ATOMIC, PRESERVE, RULES, Schema

__all__ = ["SchemaError", "structural_schema"]

_UNKNOWN = "unknown"
INT_OR_STRING = "x-kubernetes-int-or-string"
_BOUNDS = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}
_IN_ORDER = (
    "description", "type", "format", "default", "enum", "pattern", "minLength", "maxLength",
    "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf", "minItems",
    "maxItems", "minProperties", "maxProperties", "anyOf", "required", "properties", "items",
    "additionalProperties", INT_OR_STRING, PRESERVE, "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys", "x-kubernetes-map-type", RULES,
)  # fmt: skip
_DROPPED = {"title", "$defs"}
_FORMATS = {"date-time"}
_REFUSED = {
    _UNKNOWN: "no schema can describe this type",
    "prefixItems": "a tuple has no structural schema; use a list or a model",
    "uniqueItems": "a set has no order to compare by; use a list with ListSet()",
    "oneOf": "a union has no structural schema; use a model with optional fields",
    "propertyNames": "keys of a map cannot be constrained; use plain str and a Rule",
}


class SchemaError(Exception):
    """A type that no structural schema can describe; the message begins with the field's path."""


def structural_schema(model: type[BaseModel]) -> Schema:
    """Return the model's schema, or say which field cannot be in one."""
    written = model.model_json_schema(by_alias=True, schema_generator=_Written)
    return _Inliner(written.get("$defs", {})).structural(written, model.__name__, ())


class _Written(GenerateJsonSchema):
    """pydantic's writer; defaults leave out what is absent, and what it would skip is an error."""

    def get_default_value(self, schema: Any) -> Any:  # noqa: ANN401  # pydantic's own words
        factory = schema.get("default_factory")
        return factory() if factory else schema.get("default", NoDefault)

    def encode_default(self, dft: Any) -> Any:  # noqa: ANN401  # pydantic's own words
        if isinstance(dft, BaseModel):
            return _said(dft.model_dump(mode="json", by_alias=True, exclude_none=True))
        return super().encode_default(dft)

    def sort(self, value: Schema, parent_key: str | None = None) -> Schema:  # noqa: ARG002
        return value  # fields stay in the order they were written in

    def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> Schema:  # noqa: ANN401, ARG002
        return {_UNKNOWN: error_info}  # refused later, where the field's path is known

    def emit_warning(self, kind: JsonSchemaWarningKind, detail: str) -> None:  # noqa: ARG002
        raise SchemaError(detail)


def _said(default: Any) -> Any:  # noqa: ANN401  # any JSON value
    """Leave out what is empty: an empty default says no more than absence."""
    if not isinstance(default, dict):
        return default
    fields = {name: _said(value) for name, value in default.items()}
    return {name: value for name, value in fields.items() if value not in ([], {})}


class _Inliner:
    def __init__(self, definitions: dict[str, Schema]) -> None:
        self.definitions = definitions

    def structural(self, raw: Schema, path: str, inside: tuple[str, ...]) -> Schema:
        """Return the schema with nothing in it but what a structural one may hold."""
        schema, inside = self._in_place(raw, path, inside)
        for key, why in _REFUSED.items():
            if key in schema:
                raise SchemaError(f"{path}: {why}")
        if "const" in schema:
            schema["enum"] = [schema.pop("const")]
        for strict, bound in _BOUNDS.items():
            if strict in schema:
                schema[bound], schema[strict] = schema[strict], True
        if schema.pop(ATOMIC, False):
            what = "list" if schema.get("type") == "array" else "map"
            schema[f"x-kubernetes-{what}-type"] = "atomic"
        if schema.get("default") in (None, [], {}):
            schema.pop("default", None)
        self._descend(schema, path, inside)
        return _checked(schema, path)

    def _in_place(
        self, raw: Schema, path: str, inside: tuple[str, ...]
    ) -> tuple[Schema, tuple[str, ...]]:
        """Follow references and options to the schema itself; what stands beside them joins it."""
        schema = dict(raw)
        while True:
            if "$ref" in schema:
                name = schema.pop("$ref").rpartition("/")[2]
                if name in inside:
                    raise SchemaError(f"{path}: {name} contains itself; no schema can be recursive")
                inside = (*inside, name)
                schema = _joined(self.definitions[name], schema)
            elif "anyOf" in schema and INT_OR_STRING not in schema:
                schema = _joined(_only_choice(schema.pop("anyOf"), path), schema)
            else:
                return schema, inside

    def _descend(self, schema: Schema, path: str, inside: tuple[str, ...]) -> None:
        if "properties" in schema:
            for name in schema.get("required", ()):
                if {"type": "null"} in schema["properties"][name].get("anyOf", ()):
                    raise SchemaError(f"{path}.{name}: an optional field needs '= None'")
            schema["properties"] = {
                name: self.structural(field, f"{path}.{name}", inside)
                for name, field in schema["properties"].items()
            }
        if schema.get("additionalProperties") is True and PRESERVE not in schema:
            raise SchemaError(f"{path}: holds anything at all; say so with PreserveUnknown()")
        if schema.get("additionalProperties") in (True, False):
            del schema["additionalProperties"]
        for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
            if key in schema:
                schema[key] = self.structural(schema[key], path + mark, inside)


def _only_choice(choices: list[Schema], path: str) -> Schema:
    real = [choice for choice in choices if choice != {"type": "null"}]
    if len(real) != 1:
        raise SchemaError(f"{path}: a union has no structural schema; use IntOrString or a model")
    return real[0]


def _joined(inner: Schema, outer: Schema) -> Schema:
    """Return both; the outer, being nearer to the field, wins, but rules of both are kept."""
    rules = [*inner.get(RULES, ()), *outer.get(RULES, ())]
    return {**inner, **outer, **({RULES: rules} if rules else {})}


def _checked(schema: Schema, path: str) -> Schema:
    problem = next(_problems(schema), None)
    if problem:
        raise SchemaError(f"{path}: {problem}")
    return {key: schema[key] for key in _IN_ORDER if key in schema}


def _problems(schema: Schema) -> Iterator[str]:
    if "type" not in schema and INT_OR_STRING not in schema:
        yield "has no type; free-form objects need PreserveUnknown()"
    if schema.get("format", "date-time") not in _FORMATS:
        yield f"format {schema['format']} is not Kubernetes' own; use str with a Rule"
    for bound in _BOUNDS.values():
        if schema.get(bound, 0) != int(schema.get(bound, 0)):
            # The server cuts the bound to a whole number when the value is one: 0 passes 0.1.
            yield f"{bound} {schema[bound]} does not hold for whole numbers; use a Rule"
    for key in schema.keys() - set(_IN_ORDER) - _DROPPED:
        yield f"a structural schema has no {key}"
