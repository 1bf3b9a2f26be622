"""How each component of the local cluster is."""

from dataclasses import asdict, dataclass
from typing import Any

from novacron.cli.local import Adopted
from novacron.cli.operator import OperatorProcess
from novacron.localcluster.components import COMPONENTS
from novacron.localcluster.hypervisor import Arrangement, Hypervisor
from novacron.localcluster.kubevirt.names import PROGRAMS
from novacron.localcluster.kubevirt.presence import is_added
from novacron.localcluster.layout import Layout
from novacron.workplace.home import Home

__all__ = ["Component", "components"]


@dataclass(frozen=True, slots=True)
class Component:
    """One process, or the lack of one."""

    name: str
    state: str
    pid: int | None
    port: int | None
    log: str

    def document(self) -> dict[str, Any]:
        """Return it for a program to read."""
        return asdict(self)


def components(home: Home) -> list[Component]:
    """Return every component that ``up`` starts."""
    planes = [] if Adopted.read(home) else _control_plane(Layout(home.cluster))
    hosts = Arrangement(home.state).hosts if home.hypervisor.exists() else []
    hypervisors = [_hypervisor(host, number) for number, host in enumerate(hosts, start=1)]
    return [*planes, *hypervisors, _operator(OperatorProcess(home))]


def _control_plane(cluster: Layout) -> list[Component]:
    ports = cluster.ports.read()
    found = []
    added = PROGRAMS if is_added(cluster.directory) else ()
    for name in (*COMPONENTS, *added):
        process = cluster.processes.running(name)
        state = "running" if process else "stopped"
        log = str(cluster.processes.log(name))
        found.append(Component(name, state, process.pid if process else None, ports.get(name), log))
    return found


def _hypervisor(hypervisor: Hypervisor, number: int) -> Component:
    process = hypervisor.running()
    state = ("running" if hypervisor.ready() else "not ready") if process else "stopped"
    log = str(hypervisor.processes.log("libvirtd"))
    name = "hypervisor" if number == 1 else f"hypervisor-{number}"
    return Component(name, state, process.pid if process else None, None, log)


def _operator(operator: OperatorProcess) -> Component:
    process = operator.processes.running("operator")
    state = ("running" if operator.ready() else "not ready") if process else "stopped"
    log = str(operator.processes.log("operator"))
    return Component("operator", state, process.pid if process else None, operator.port, log)
