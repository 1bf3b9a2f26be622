"""How each component of the local cluster is."""

from dataclasses import asdict, dataclass
from typing import Any

from novacron.cli.local import Adopted
from novacron.cli.operator import OperatorProcess
from novacron.localcluster.components import COMPONENTS
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
    cluster, operator = Layout(home.cluster), OperatorProcess(home)
    ports = cluster.ports.read()
    found = []
    for name in () if Adopted.read(home) else COMPONENTS:
        process = cluster.processes.running(name)
        state = "running" if process else "stopped"
        log = str(cluster.processes.log(name))
        found.append(Component(name, state, process.pid if process else None, ports.get(name), log))
    process = operator.processes.running("operator")
    state = ("running" if operator.ready() else "not ready") if process else "stopped"
    log = str(operator.processes.log("operator"))
    found.append(Component("operator", state, process.pid if process else None, operator.port, log))
    return found
