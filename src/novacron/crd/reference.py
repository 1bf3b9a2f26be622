"""Writes the reference page of a kind: its fields, defaults, rules and columns."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from novacron.crd.kind import Column, KindInfo
from novacron.crd.markers import PRESERVE, RULES, Schema
from novacron.crd.model import QUANTITY_PATTERN, CustomResource
from novacron.crd.schema import INT_OR_STRING, structural_schema

__all__ = ["page"]

_LIMITS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "minLength": "length at least {}",
    "maxLength": "length at most {}",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "maxProperties": "at most {} entries",
    "pattern": "matches `{}`",
}

_EACH, _ANY = "[]", ".*"
_EVERYWHERE = ("apiVersion", "kind", "metadata")


@dataclass(frozen=True, slots=True)
class _Node:
    """One place in a schema: a field, what a list is made of, or what a map holds."""

    path: str
    schema: Schema
    required: bool = False

    @property
    def is_field(self) -> bool:
        return not self.path.endswith((_EACH, _ANY))


def page(*versions: type[CustomResource]) -> str:
    """Return the kind's page in Markdown, a section for each version."""
    first = versions[0].__kind__
    title = f"# {first.kind} (`{first.full_name}`)"
    return "\n\n".join([title, *(_section(version) for version in versions)]) + "\n"


def _section(version: type[CustomResource]) -> str:
    info = version.__kind__
    schema = structural_schema(version)
    nodes = [node for node in _nodes(schema, "") if node.path not in _EVERYWHERE]
    parts = [
        f"## `{info.api_version}`",
        schema.get("description", ""),
        _summary(info),
        "### Fields",
        _table(
            ("Field", "Type", "Default", "What it is"),
            (_field(node) for node in nodes if node.is_field),
        ),
        "### Rules",
        _table(("Where", "What is asked"), _rules([_Node("", schema), *nodes])),
        "### Columns of `kubectl get`",
        _table(("Column", "From", "Shown"), (_column(column) for column in info.columns)),
    ]
    return "\n\n".join(parts)


def _summary(info: KindInfo) -> str:
    lines = [f"- Scope: {'namespaced' if info.namespaced else 'cluster'}"]
    if info.short_names:
        lines.append(f"- Short names: {_code(info.short_names)}")
    if info.categories:
        lines.append(f"- Categories: {_code(info.categories)}")
    subresources = ["status"] * info.status + ["scale"] * bool(info.scale)
    if subresources:
        lines.append(f"- Subresources: {_code(subresources)}")
    if info.storage:
        lines.append("- Objects are stored in this version")
    return "\n".join(lines)


def _nodes(schema: Schema, path: str) -> Iterator[_Node]:
    """Walk over everything below the schema."""
    for name, field in schema.get("properties", {}).items():
        here = f"{path}.{name}" if path else name
        yield _Node(here, field, required=name in schema.get("required", ()))
        yield from _nodes(field, here)
    for key, mark in (("items", _EACH), ("additionalProperties", _ANY)):
        if key in schema:
            yield _Node(path + mark, schema[key])
            yield from _nodes(schema[key], path + mark)


def _field(node: _Node) -> tuple[str, ...]:
    default = "required" if node.required else ""
    if "default" in node.schema:
        default = f"`{json.dumps(node.schema['default'])}`"
    text = " ".join(node.schema.get("description", "").split())
    limits = _limits(node.schema)
    return f"`{node.path}`", _type(node.schema), default, f"{text} ({limits})" if limits else text


def _type(schema: Schema) -> str:
    if INT_OR_STRING in schema:
        return "quantity" if _is_quantity(schema) else "integer or string"
    if "items" in schema:
        return f"list of {_type(schema['items'])}"
    if "additionalProperties" in schema:
        return f"map of {_type(schema['additionalProperties'])}"
    if PRESERVE in schema:
        return "any object"
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    return "time" if schema.get("format") == "date-time" else str(schema["type"])


def _is_quantity(schema: Schema) -> bool:
    by_rule = any("isQuantity" in rule["rule"] for rule in schema.get(RULES, ()))
    return by_rule or schema.get("pattern") == QUANTITY_PATTERN


def _limits(schema: Schema) -> str:
    said = [
        _limit(schema, key, text)
        for key, text in _LIMITS.items()
        if key in schema and INT_OR_STRING not in schema
    ]
    if keys := schema.get("x-kubernetes-list-map-keys"):
        said.append(f"one per {' and '.join(keys)}")
    return ", ".join(said)


def _limit(schema: Schema, key: str, text: str) -> str:
    if schema.get(f"exclusive{key.capitalize()}"):
        text = {"minimum": "above {}", "maximum": "below {}"}[key]
    return text.format(schema[key])


def _rules(nodes: Iterable[_Node]) -> Iterator[tuple[str, ...]]:
    for node in nodes:
        for rule in node.schema.get(RULES, ()):
            where = (node.path + rule.get("fieldPath", "")).removeprefix(".")
            yield f"`{where}`" if where else "the object", rule["message"]


def _column(column: Column) -> tuple[str, ...]:
    return column.name, f"`{column.json_path}`", "with `-o wide`" if column.priority else "always"


def _code(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [tuple(header), tuple("---" for _ in header), *map(tuple, rows)]
    if len(lines) == 2:
        return "None."
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
