"""What a machine needs and the cluster does not have."""

from novacron.core.conditions import Condition

__all__ = ["Missing"]


class Missing(Exception):
    """Something has to be there first; whoever puts it there need not tell us.

    ``part`` is the condition of the machine that is False for it.
    """

    def __init__(self, reason: str, message: str, part: Condition) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.part = part
