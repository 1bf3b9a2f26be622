"""Control planes for tests: throw-away, on loopback, without fsync."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from novacron.localcluster.controlplane import ControlPlane, Options

__all__ = ["ALL", "API_ONLY", "discard", "throw_away"]

API_ONLY = ("etcd", "kube-apiserver")
ALL = (*API_ONLY, "kube-controller-manager", "kube-scheduler")


def throw_away(
    directory: Path,
    binaries: Path,
    components: Sequence[str] = API_ONLY,
    extra_flags: Mapping[str, Sequence[str]] | None = None,
) -> ControlPlane:
    """Describe a control plane in the directory; the caller starts and stops it."""
    options = Options(components=components, fsync=False, extra_flags=extra_flags or {})
    return ControlPlane(directory, binaries, options)


def discard(plane: ControlPlane) -> None:
    """End a control plane whose data nobody wants: at once, without its taking leave."""
    for name in plane.options.components:
        plane.kill(name)
    plane.stop()
