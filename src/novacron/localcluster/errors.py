"""Failures of the local cluster, each one sentence that a user can act upon."""

from novacron.workplace.errors import WorkplaceError

__all__ = ["BuildFailed", "LocalClusterError", "PortTaken", "ProcessFailed"]


class LocalClusterError(WorkplaceError):
    """Something the local cluster needs is missing or broken; the message says what to do."""


class BuildFailed(LocalClusterError):
    """The Kubernetes programs could not be built or are not the ones asked for."""


class ProcessFailed(LocalClusterError):
    """A program stopped or did not become ready in time; the message quotes its log."""


class PortTaken(ProcessFailed):
    """A program found its port in use by somebody else."""
