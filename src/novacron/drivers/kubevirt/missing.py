"""What a machine needs and the cluster does not have."""

from novacron.core.conditions import Condition
from novacron.runtime.errors import NotFound

__all__ = ["Missing", "is_namespace", "no_namespace"]


class Missing(Exception):
    """Something has to be there first; whoever puts it there need not tell us.

    ``part`` is the condition of the machine that is False for it.
    """

    def __init__(self, reason: str, message: str, part: Condition) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.part = part


def is_namespace(error: NotFound) -> bool:
    """Say whether it is the namespace that is not there."""
    return error.message.startswith("namespaces ")


def no_namespace(cluster: str, namespace: str) -> Missing:
    """Return what is to be said of a machine for whose namespace there is no like."""
    message = (
        f"cluster {cluster} has no namespace {namespace}: create it there (kubectl create "
        f"namespace {namespace})"
    )
    part = Condition("StorageReady", "False", "PVCPending", message)
    return Missing("NamespaceNotFound", message, part)
