"""How the processes of a node's pods are told from all others. Standard library only."""

from pathlib import Path

__all__ = ["pods_mark"]


def pods_mark(directory: Path) -> str:
    """Return the mark in the environment of the keepers of the node in a directory."""
    return f"{directory.absolute()}:pods"
