"""Types that kinds of every family are built from."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from novacron.crd import Model, Rule

__all__ = ["Amount", "Amounts", "Condition", "ConditionStatus", "Labels", "Name", "Text"]

ConditionStatus = Literal["True", "False", "Unknown"]

Text = Annotated[str, Field(max_length=1024)]
"""A line of text; bounded, because rules may only touch what is bounded."""

Name = Annotated[
    str,
    Field(min_length=1, max_length=63),
    Rule(
        "self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
        "must be lower-case letters, digits and '-', starting and ending with a letter or digit",
    ),
]
"""A name unique within its list."""

Labels = Annotated[dict[str, str], Field(max_length=64)]
"""Keys and values that things are told apart by."""


class Condition(Model):
    """One thing that is so, is not so, or is not known."""

    type: Annotated[str, Field(min_length=1, max_length=316)]
    """What the condition is about, in CamelCase."""
    status: ConditionStatus
    """Whether it is so."""
    last_probe_time: datetime | None = None
    """When it was last looked at and something about it had changed."""
    last_transition_time: datetime | None = None
    """When the status last changed."""
    reason: Annotated[str, Field(max_length=1024)] | None = None
    """Why, in one CamelCase word that can be searched for."""
    message: Annotated[str, Field(max_length=32768)] | None = None
    """Why, in a sentence."""
    observed_generation: Annotated[int, Field(ge=0)] | None = None
    """The metadata.generation that this was found out for."""


Amount = Annotated[str, Field(max_length=32)]
"""A quantity in a status: always text, and not checked, because only we write it."""


class Amounts(Model):
    """An amount of each resource."""

    cpu: Annotated[int, Field(ge=0)] = 0
    """Virtual CPUs."""
    memory: Amount = "0"
    """Memory."""
    disk: Amount = "0"
    """Disk space."""
