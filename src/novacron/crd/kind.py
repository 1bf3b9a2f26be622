"""What makes a model a kind: its names, its scope, its columns and its subresources.

``@kind(group=…, version=…)`` hangs a ``KindInfo`` on the class; the manifest and the reference
are written from it, and a client finds the paths of the API in it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

from novacron.crd.model import CustomResource

__all__ = ["AGE", "Column", "KindInfo", "Scale", "Scope", "kind"]

Scope = Literal["Namespaced", "Cluster"]
Resource = TypeVar("Resource", bound=CustomResource)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of ``kubectl get``; a priority above 0 shows it in ``-o wide`` only."""

    name: str
    json_path: str
    type: Literal["string", "integer", "number", "boolean", "date"] = "string"
    priority: int = 0
    description: str = ""


AGE = Column("Age", ".metadata.creationTimestamp", "date")


@dataclass(frozen=True, slots=True)
class Scale:
    """Where ``kubectl scale`` and autoscalers find the wanted and the present count."""

    spec_path: str = ".spec.replicas"
    status_path: str = ".status.replicas"
    selector_path: str = ""


@dataclass(frozen=True, slots=True)
class KindInfo:
    """One version of one kind, as the API server knows it."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    scope: Scope = "Namespaced"
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    status: bool = True
    scale: Scale | None = None
    served: bool = True
    storage: bool = True

    @property
    def namespaced(self) -> bool:
        """Whether its objects live in namespaces."""
        return self.scope == "Namespaced"

    @property
    def api_version(self) -> str:
        """What its objects say in ``apiVersion``."""
        return f"{self.group}/{self.version}"

    @property
    def full_name(self) -> str:
        """The name no other kind has: of the definition, and for ``kubectl get``."""
        return f"{self.plural}.{self.group}"


def kind(  # noqa: PLR0913  # a kind has this many facts and each is named where it is used
    *,
    group: str,
    version: str,
    name: str = "",
    plural: str = "",
    singular: str = "",
    short: tuple[str, ...] = (),
    scope: Scope = "Namespaced",
    categories: tuple[str, ...] = (),
    columns: tuple[Column, ...] = (AGE,),
    status: bool = True,
    scale: Scale | None = None,
    served: bool = True,
    storage: bool = True,
) -> Callable[[type[Resource]], type[Resource]]:
    """Make the class a kind; its own name is the kind's unless another version took it.

    With several versions of a kind, each is a class of its own and one has ``storage``.
    """

    def mark(model: type[Resource]) -> type[Resource]:
        said = name or model.__name__
        one = singular or said.lower()
        model.__kind__ = KindInfo(
            group=group,
            version=version,
            kind=said,
            plural=plural or f"{one}s",
            singular=one,
            scope=scope,
            short_names=short,
            categories=categories,
            columns=columns,
            status=status,
            scale=scale,
            served=served,
            storage=storage,
        )
        return model

    return mark
