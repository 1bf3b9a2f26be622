"""The guest's first instructions: who it is, how it reaches the network, what to run."""

import json
from dataclasses import dataclass

from novacron.core.guest_network import network_configuration
from novacron.core.machine import MachinePlan
from novacron.drivers.libvirt.domain import seed_volume
from novacron.drivers.libvirt.interfaces import mac_of

__all__ = ["Seed", "seed_of"]


@dataclass(frozen=True, slots=True)
class Seed:
    """The NoCloud disk of a machine: its name, its length, and what is not zeros at its end."""

    name: str
    length: int
    content: bytes


def seed_of(plan: MachinePlan) -> Seed:
    """Return the disk of a machine, the same for the same plan."""
    # Loaded when a machine is made: an operator of simulated hosts never needs it.
    from novacron.guests.nocloud import nocloud_image  # noqa: PLC0415

    ref = plan.ref
    meta = {"instance-id": ref.uid, "local-hostname": ref.name}
    network = network_configuration((mac_of(ref.uid, nic), nic) for nic in plan.nics)
    disk = nocloud_image(json.dumps(meta), plan.user_data or "", json.dumps(network))
    return Seed(seed_volume(ref.uid, disk.content), disk.length, disk.content)
