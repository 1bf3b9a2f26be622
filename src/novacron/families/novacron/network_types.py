"""Networks of a Host: what their names mean there, and which of them machines can be on."""

from typing import Annotated, Literal

from pydantic import Field

from novacron.crd import Atomic, Model, Rule

__all__ = ["HostNetwork", "LibvirtNetwork"]


class LibvirtNetwork(Model):
    """What the name of a network means on this host."""

    __rules__ = (
        Rule(
            "(self.type == 'user') != has(self.bridge)",
            "types bridge and ovs need the name of a bridge, type user takes none",
            field_path=".bridge",
        ),
        Rule(
            "!has(self.vlan) || self.type == 'ovs'",
            "vlan is for type ovs only: make a bridge on the VLAN and name that",
            field_path=".vlan",
            reason="FieldValueForbidden",
        ),
    )

    type: Literal["bridge", "ovs", "user"]
    """bridge is one of the kernel's, ovs one of Open vSwitch, user is user-mode networking."""
    bridge: Annotated[str, Field(min_length=1, max_length=15)] | None = None
    """The bridge that machines are plugged into; it must be there."""
    vlan: Annotated[int, Field(ge=1, le=4094)] | None = None
    """The VLAN that machines are in, untagged for them; without it, none."""


class HostNetwork(Model):
    """A network that machines on this host can be plugged into."""

    name: str
    """What machines call it."""
    types: Annotated[list[str], Atomic()] = []
    """The types under which they may ask for it."""
    message: str | None = None
    """Why none can be plugged into it for now."""
