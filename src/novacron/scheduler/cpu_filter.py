"""Filter on the CPU of a machine that is to go on running: it cannot have less than it has."""

from novacron.core.cpu import Cpu
from novacron.core.machine import Machine
from novacron.scheduler.filter import Asked, Filter, Refused, have, lack, some
from novacron.scheduler.table import HostTable, Mask

__all__ = ["KEPT_CPU", "kept_cpu"]


def kept_cpu(table: HostTable, machine: Machine) -> Cpu | None:
    """Return the CPU that a machine goes on running with; None where it need not, or nobody knows.

    Its host may have got another one since it was started, or the machine came from elsewhere. Of
    one that does not say what it was started with it is taken to be that of its host.
    """
    if not machine.keeps_cpu or machine.leaving is None:
        return None
    if machine.guest_cpu and (own := table.cpus.called(machine.guest_cpu)) is not None:
        return own
    row = table.row(machine.leaving)
    host = None if row is None else table.hosts[row]
    return host.cpu if host is not None else None


def _unable(table: HostTable, asked: Asked) -> Mask | None:
    return None if asked.cpu is None else table.cpus.unable(asked.cpu, table.size)


def _say_unable(asked: Asked, refused: Refused) -> str:
    assert asked.cpu is not None
    missing = {
        feature
        for host in refused.hosts
        if host.cpu is not None and host.cpu.features
        for feature in asked.cpu.features - host.cpu.features
    }
    if missing:
        return f"{lack(refused)} {some(missing)} of the CPU that it runs with ({asked.cpu.model})"
    others = some(_name(host.cpu) for host in refused.hosts if host.cpu is not None)
    return f"{have(refused)} another CPU ({others}) than it runs with ({_name(asked.cpu)})"


def _name(cpu: Cpu) -> str:
    return f"{cpu.model} {cpu.accelerator}".strip()


KEPT_CPU = Filter("KeptCPU", _unable, _say_unable)
