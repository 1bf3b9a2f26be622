"""A mark on a host that keeps machines away."""

from dataclasses import dataclass

__all__ = ["Taint"]


@dataclass(frozen=True, slots=True)
class Taint:
    """A mark that keeps machines away; effects are Kubernetes' own words."""

    key: str
    effect: str
    value: str = ""

    def __str__(self) -> str:
        mark = f"{self.key}={self.value}" if self.value else self.key
        return f"{mark}:{self.effect}"
