"""A piece of a host's hardware that a machine can be handed whole.

Names are written the way people type them (``nvidia``, ``tesla-t4``); turning what a hypervisor
calls a thing into such a name is its driver's work.
"""

from dataclasses import dataclass

__all__ = ["HostDevice"]


@dataclass(frozen=True, slots=True)
class HostDevice:
    """One device of one host.

    ``address`` is where the host has it: of a PCI device its address (``0000:3b:00.0``), of a
    mediated device, which has ``kind`` mdev, its UUID. ``numa_node`` is the memory it is close to,
    where that is known.
    """

    address: str
    kind: str
    vendor: str
    model: str
    numa_node: int | None = None
