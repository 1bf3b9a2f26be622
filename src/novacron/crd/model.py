"""The types that API objects are written in: models, quantities, int-or-strings.

Python says snake_case, JSON says camelCase. Unknown fields are refused, values are frozen, and
``X | None = None`` means that the field may be absent: nothing is ever written as null.
"""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, GetJsonSchemaHandler, WithJsonSchema
from pydantic.alias_generators import to_camel

from novacron.crd.markers import Rule

if TYPE_CHECKING:
    from novacron.crd.kind import KindInfo

__all__ = [
    "QUANTITY_PATTERN",
    "CustomResource",
    "IntOrString",
    "Model",
    "ObjectMeta",
    "PositiveQuantity",
    "Quantity",
]

QUANTITY_PATTERN = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$"


class Model(BaseModel):
    """An object in an API; ``__rules__`` are its CEL rules, joined to those of its bases."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
    )
    __rules__: ClassVar[tuple[Rule, ...]] = ()

    def dump(self) -> dict[str, Any]:
        """Return the object as JSON values, absent fields left out."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)

    @classmethod
    def __get_pydantic_json_schema__(
        cls,
        core: Any,  # noqa: ANN401  # pydantic's own words
        handler: GetJsonSchemaHandler,
    ) -> dict[str, Any]:
        written = handler(core)
        own = handler.resolve_ref_schema(written)
        for base in reversed(cls.__mro__):
            for rule in vars(base).get("__rules__", ()):
                rule.add_to(own)
        return written


class ObjectMeta(Model):
    """What the API server keeps about every object; only what this project reads of it."""

    model_config = ConfigDict(extra="ignore")

    name: str = ""
    namespace: str = ""
    generate_name: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: list[str] = []
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None

    @classmethod
    def __get_pydantic_json_schema__(
        cls,
        core: Any,  # noqa: ANN401  # pydantic's own words
        handler: GetJsonSchemaHandler,
    ) -> dict[str, Any]:
        return {"type": "object"}  # the server knows metadata and lets nobody describe it


class CustomResource(Model):
    """A whole object of a kind; subclasses add ``spec`` and ``status`` and wear ``@kind``."""

    __kind__: ClassVar["KindInfo"]

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()

    def dump(self) -> dict[str, Any]:
        """Return the object as it is sent to the server."""
        known = {"apiVersion": self.__kind__.api_version, "kind": self.__kind__.kind}
        metadata = self.metadata.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        return {**super().dump(), **known, "metadata": metadata}


def _text(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


_INT_OR_STRING = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
    "maxLength": 32,  # longer than any amount there is; rules may not touch unbounded strings
}

IntOrString = Annotated[int | str, WithJsonSchema(_INT_OR_STRING)]
"""A count or a text such as a percentage; stays what it was."""

Quantity = Annotated[
    str, BeforeValidator(_text), WithJsonSchema({**_INT_OR_STRING, "pattern": QUANTITY_PATTERN})
]
"""An amount in Kubernetes' notation, 4 or "1.5" or "8Gi"; always text once parsed."""

PositiveQuantity = Annotated[
    str,
    BeforeValidator(_text),
    WithJsonSchema(_INT_OR_STRING),
    Rule(
        "isQuantity(string(self)) && quantity(string(self)).isGreaterThan(quantity('0'))"
        " && quantity(string(self)).isLessThan(quantity('1Ei'))",
        "must be a quantity above zero and below 1Ei, such as 512Mi, 10Gi or 1.5Ti",
    ),
]
"""A quantity of something there must be some of. It has no pattern: the rule alone tells a user
what is wrong, in words. The upper bound keeps "1e9999" out of everybody's arithmetic."""
