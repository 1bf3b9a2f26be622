"""Failures of the local cluster, each one sentence that a user can act upon."""

__all__ = ["BuildFailed", "ClusterBusy", "LocalClusterError", "PortTaken", "ProcessFailed"]


class LocalClusterError(Exception):
    """Something the local cluster needs is missing or broken; the message says what to do."""


class BuildFailed(LocalClusterError):
    """The Kubernetes programs could not be built or are not the ones asked for."""


class ProcessFailed(LocalClusterError):
    """A program stopped or did not become ready in time; the message quotes its log."""


class PortTaken(ProcessFailed):
    """A program found its port in use by somebody else."""


class ClusterBusy(LocalClusterError):
    """Another novacron command is at work on the same state directory."""
