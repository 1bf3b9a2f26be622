"""Plans and sizes for the simulation driver's own tests."""

from collections.abc import Callable

from novacron.core.machine import MachinePlan, MachineRef, Nic, Resources
from novacron.drivers.simulation import SimulatedHost, SimulationDriver

ROOM = Resources(16, 16384, 100_000)
SMALL = Resources(2, 1024, 10_000)

Connect = Callable[[SimulatedHost], SimulationDriver]


def plan(
    uid: str = "uid-1",
    *,
    host: str = "a",
    name: str = "web",
    size: Resources = SMALL,
    nics: tuple[Nic, ...] = (),
) -> MachinePlan:
    """A plan for a small machine."""
    return MachinePlan(MachineRef(uid, "default", name, host), size, "tiny", nics)
