"""What a machine needs and the cluster does not have."""

from datetime import timedelta

from novacron.core.conditions import Condition
from novacron.runtime.errors import NotFound

__all__ = ["Missing", "is_namespace", "name_taken", "no_namespace"]

# The cluster tells of what is followed; of anything else nobody does, so it is looked for.
FOLLOWED = timedelta(seconds=60)
NOT_FOLLOWED = timedelta(seconds=10)


class Missing(Exception):
    """Something has to be there first; whoever puts it there need not tell us.

    ``part`` is the condition of the machine that is False for it. What is ``followed`` is heard of
    when it comes.
    """

    def __init__(
        self, reason: str, message: str, part: Condition, *, followed: bool = False
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.part = part
        self.again = FOLLOWED if followed else NOT_FOLLOWED


def name_taken(kind: str, name: str, part: str, remedy: str) -> Missing:
    """Return what is raised where somebody else has an object of a name that a machine needs."""
    reasons = {"StorageReady": "PVCPending", "VirtualMachineReady": "VMFailed"}
    message = (
        f"there is a {kind} {name} that is not this machine's and is left alone: delete or rename "
        f"it, or {remedy}"
    )
    return Missing("NameTaken", message, Condition(part, "False", reasons[part], message))


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
