"""Becoming the user of a container: no way back, and no more of root's power than it is given.

Standard library only.
"""

import os
import signal

from novacron.localcluster.node.kernel import (
    drop_capability,
    forbid_new_privileges,
    last_capability,
    send_on_death_of_parent,
)
from novacron.localcluster.node.order import User

__all__ = ["become"]


def become(user: User) -> None:
    """Change into the user for good, and have the kernel end us with our parent."""
    for number in range(last_capability() + 1):
        if number not in user.capabilities:
            drop_capability(number)
    os.setgroups(list(user.groups))
    os.setgid(user.gid)
    os.setuid(user.uid)
    if not user.new_privileges:
        forbid_new_privileges()
    send_on_death_of_parent(signal.SIGKILL)
