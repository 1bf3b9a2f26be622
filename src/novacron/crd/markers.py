"""Markers: what a type cannot say by itself, put into its annotation or its class.

``Annotated[list[Disk], ListMap("name"), Field(max_length=64)]`` and the like. A marker only adds
to the JSON schema that pydantic writes; it checks nothing when a value is parsed, because the
API server has done so by then.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import GetJsonSchemaHandler

__all__ = ["ATOMIC", "PRESERVE", "RULES", "Atomic", "ListMap", "ListSet", "PreserveUnknown", "Rule"]

ATOMIC = "atomic"
PRESERVE = "x-kubernetes-preserve-unknown-fields"
RULES = "x-kubernetes-validations"

Schema = dict[str, Any]
Reason = Literal[
    "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"
]


@dataclass(frozen=True, slots=True)
class _Marker(ABC):
    """Lets the schema be written and then adds to it; a reference keeps the addition beside it."""

    def __get_pydantic_json_schema__(self, core: Any, handler: GetJsonSchemaHandler) -> Schema:  # noqa: ANN401  # pydantic's own words
        written = dict(handler(core))
        self.add_to(written)
        return written

    @abstractmethod
    def add_to(self, schema: Schema) -> None:
        """Say in the schema what this marker means."""


@dataclass(frozen=True, slots=True)
class Rule(_Marker):
    """A CEL rule and the sentence a user reads when it is broken.

    Put it on a field (``self`` is the field's value) or in a model's ``__rules__`` (``self`` is
    the object). Every list and string it touches needs a bound, or the server refuses the rule
    as too costly. ``field_path`` says which field of the object the sentence is about.
    """

    cel: str
    message: str
    field_path: str = ""
    reason: Reason | None = None

    def add_to(self, schema: Schema) -> None:
        """Join the rules already there; never replace them."""
        schema[RULES] = [*schema.get(RULES, ()), self.stanza()]

    def stanza(self) -> Schema:
        """Return the rule as a CustomResourceDefinition writes it."""
        stanza: Schema = {"rule": self.cel, "message": self.message}
        if self.field_path:
            stanza["fieldPath"] = self.field_path
        if self.reason:
            stanza["reason"] = self.reason
        return stanza


@dataclass(frozen=True, slots=True, init=False)
class ListMap(_Marker):
    """A list whose items are told apart by these keys, so that appliers may share it."""

    keys: tuple[str, ...]

    def __init__(self, *keys: str) -> None:
        object.__setattr__(self, "keys", keys)

    def add_to(self, schema: Schema) -> None:
        """Make the list a map."""
        schema["x-kubernetes-list-type"] = "map"
        schema["x-kubernetes-list-map-keys"] = list(self.keys)


@dataclass(frozen=True, slots=True)
class ListSet(_Marker):
    """A list in which each value stands once, so that appliers may share it."""

    def add_to(self, schema: Schema) -> None:
        """Make the list a set."""
        schema["x-kubernetes-list-type"] = "set"


@dataclass(frozen=True, slots=True)
class Atomic(_Marker):
    """A list or object that is always replaced as a whole."""

    def add_to(self, schema: Schema) -> None:
        """Leave word; whether it is a list or an object shows once references are in place."""
        schema[ATOMIC] = True


@dataclass(frozen=True, slots=True)
class PreserveUnknown(_Marker):
    """An object that may hold more than the schema says: whatever is in it is kept."""

    def add_to(self, schema: Schema) -> None:
        """Let the object hold anything."""
        schema["type"] = "object"
        schema[PRESERVE] = True
