"""How machines leave a Host and come to it."""

from typing import Annotated

from pydantic import Field

from novacron.crd import Model, Rule

__all__ = ["HostDrain", "LibvirtMigration"]

_HOST_TO_HOST = "^qemu([+](unix|tcp|tls|ssh))?://[^ /?]*/(system|session)([?][^ ]*)?$"


class HostDrain(Model):
    """How machines leave the host."""

    stop_allowed: bool = False
    """Whether machines that cannot move while they run may be stopped for it."""
    at_once: Annotated[int, Field(ge=1, le=64)] = 2
    """How many leave at the same time."""


class LibvirtMigration(Model):
    """How machines come to this host from others."""

    uri: (
        Annotated[
            str,
            Field(max_length=2048),
            Rule(
                f"self.matches('{_HOST_TO_HOST}')",
                "must be a libvirt URI such as qemu+tls://host/system",
            ),
        ]
        | None
    ) = None
    """How the libvirt daemons of other hosts reach this one's; without it, by the endpoint where
    that names a host."""
    address: Annotated[str, Field(max_length=253)] | None = None
    """Where QEMU takes machines in; without it, what this host's libvirt says."""
    tls: bool = False
    """Whether this host has certificates for QEMU, so that machines can travel encrypted."""
