"""The simulation: machines that exist only as rows of one file.

A real driver in every respect (capacity, delays, faults, addresses, drift), so that users,
tests and benchmarks can run the whole of NovaCron where no hypervisor is. Several operator
processes may share one file, and what they did outlives them.
"""

from novacron.drivers.simulation.driver import SimulationDriver
from novacron.drivers.simulation.faults import Fault, Operation
from novacron.drivers.simulation.host import Delays, SimulatedHost, UsageFractions
from novacron.drivers.simulation.world import SimulatedMachine, World

__all__ = [
    "Delays",
    "Fault",
    "Operation",
    "SimulatedHost",
    "SimulatedMachine",
    "SimulationDriver",
    "UsageFractions",
    "World",
]
