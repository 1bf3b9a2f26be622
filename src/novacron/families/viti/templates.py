"""The sizes that need no MachineClass, as the specification has them."""

from dataclasses import dataclass

__all__ = ["BUILT_IN", "DEFAULT_CLASS", "ROOT", "Template"]

ROOT = "root"
# The StorageClass of built-in templates: the class of this name, or else the cluster's default.
DEFAULT_CLASS = "default"


@dataclass(frozen=True, slots=True)
class Template:
    """A built-in size; every one has one socket, one thread per core and one disk."""

    cores: int
    memory: str
    root_disk: str


BUILT_IN = {
    "small": Template(1, "2Gi", "20Gi"),
    "medium": Template(2, "4Gi", "40Gi"),
    "large": Template(4, "8Gi", "80Gi"),
}
