"""Whether a control plane was given KubeVirt; cheap to ask, because commands ask."""

from pathlib import Path

from novacron.workplace.files import write_private

__all__ = ["is_added", "note_added"]

MARKER = "with-kubevirt"


def is_added(cluster: Path) -> bool:
    """Say whether the control plane in this directory was ever given KubeVirt."""
    return (cluster / MARKER).exists()


def note_added(cluster: Path) -> None:
    """Remember it, before anything of it is in the cluster."""
    if not is_added(cluster):
        write_private(cluster / MARKER, "")
