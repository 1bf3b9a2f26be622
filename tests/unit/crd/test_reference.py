"""Reference pages say all that a user can write and what comes of leaving it out."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from novacron.crd import (
    CustomResource,
    IntOrString,
    ListMap,
    Model,
    PositiveQuantity,
    PreserveUnknown,
    Rule,
    Scale,
    kind,
)
from novacron.crd.reference import page


class Part(Model):
    name: Annotated[str, Field(max_length=63)]
    """What it is
    called."""


class Spec(Model):
    colour: Literal["red", "blue"] = "red"
    """Red | blue."""
    size: PositiveQuantity
    parts: Annotated[list[Part], ListMap("name"), Field(max_length=3)] = []
    addresses: list[Annotated[str, Rule("isIP(self)", "must be an address")]] = []
    by_name: dict[str, Part] = {}
    free: Annotated[dict[str, Any], PreserveUnknown()] = {}
    share: Annotated[float, Field(gt=0, le=1)] = 0.5
    port: IntOrString | None = None
    since: datetime | None = None


@kind(group="test.io", version="v1", short=("gd",), categories=("tools",), scale=Scale())
class Gadget(CustomResource):
    """A gadget."""

    __rules__ = (Rule("true", "must be good", field_path=".spec.share"), Rule("true", "be kind"))

    spec: Spec


@kind(group="test.io", version="v2", columns=(), scope="Cluster", status=False, storage=False)
class Bare(CustomResource):
    """Bare."""


ROWS = [
    "# Gadget (`gadgets.test.io`)",
    "## `test.io/v1`",
    "- Short names: `gd`",
    "- Subresources: `status`, `scale`",
    '| `spec.colour` | `red` or `blue` | `"red"` | Red \\| blue. |',
    "| `spec.size` | quantity | required |  |",
    "| `spec.parts` | list of object |  |  (at most 3 items, one per name) |",
    "| `spec.parts[].name` | string | required | What it is called. (length at most 63) |",
    "| `spec.byName` | map of object |  |  |",
    "| `spec.byName.*.name` | string | required | What it is called. (length at most 63) |",
    "| `spec.free` | any object |  |  |",
    "| `spec.share` | number | `0.5` |  (above 0, at most 1) |",
    "| `spec.port` | integer or string |  |  |",
    "| `spec.since` | time |  |  |",
    "| `spec.share` | must be good |",
    "| the object | be kind |",
    "| `spec.addresses[]` | must be an address |",
    "| Age | `.metadata.creationTimestamp` | always |",
]


def test_a_page_lists_fields_rules_and_columns() -> None:
    """Everything the schema knows is on the page, in words."""
    lines = page(Gadget).splitlines()
    assert [row for row in ROWS if row not in lines] == []


def test_metadata_is_not_explained_again() -> None:
    """Kubernetes' own reference does that."""
    assert "| `metadata" not in page(Gadget)


def test_a_page_without_rules_or_columns_says_so() -> None:
    """An empty table looks like a mistake."""
    text = page(Bare)
    assert text.count("None.") == 3
    assert "- Scope: cluster" in text
    assert "Subresources" not in text
    assert "stored" not in text


def test_every_version_has_its_section() -> None:
    """Users of the older version find their fields too."""
    text = page(Gadget, Bare)
    assert text.index("## `test.io/v1`") < text.index("## `test.io/v2`")
