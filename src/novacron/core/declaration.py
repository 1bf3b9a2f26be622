"""Where something was declared, for whatever is made for it to refer back to."""

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Declaration"]


@dataclass(frozen=True, slots=True)
class Declaration:
    """The object that declares something, and the labels of whatever is made for it."""

    api_version: str
    kind: str
    name: str
    uid: str
    labels: Mapping[str, str] = field(default_factory=dict)
