"""Between the file's rows and core values: what a row looks like from outside."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

from novacron.core.machine import MachinePlan, Nic, Observed, Power, Resources, Usage
from novacron.drivers.simulation import volumes
from novacron.drivers.simulation.host import UsageFractions
from novacron.drivers.simulation.store import MachineRow, SeenRow

__all__ = ["addresses_of", "dynamic_nics", "observed", "observed_all", "split_addresses", "vm_id"]

ID_PREFIX = "sim-"
# A machine that asks for no network is on the host's own.
HOST_NETWORK = (Nic(network="host"),)


def vm_id(number: int) -> str:
    """Return a machine's identity at the host: numbers never come back, so neither do ids."""
    return f"{ID_PREFIX}{number}"


def dynamic_nics(plan: MachinePlan) -> int:
    """Count the interfaces that need an address from the host's network."""
    return sum(nic.address is None for nic in plan.nics or HOST_NETWORK)


def addresses_of(plan: MachinePlan, host_id: int, slots: Iterable[int]) -> tuple[str, ...]:
    """Return the address of each interface: its own static one, or one of the host's network.

    Host n has the network 10.n.0.0/16. There are 256 of them; past that, hosts share numbers,
    as separate networks do.
    """
    remaining = iter(slots)
    return tuple(
        nic.address.partition("/")[0]
        if nic.address is not None
        else _slot_address(host_id, next(remaining))
        for nic in plan.nics or HOST_NETWORK
    )


def _slot_address(host_id: int, slot: int) -> str:
    return f"10.{host_id % 256}.{slot // 256}.{slot % 256}"


def split_addresses(addresses: str) -> tuple[str, ...]:
    """Return a row's addresses one by one."""
    if "," in addresses:
        return tuple(addresses.split(","))
    return (addresses,) if addresses else ()


def observed(row: MachineRow, fractions: UsageFractions, now_us: int) -> Observed:
    """Tell of one machine, and when the operation under way ends."""
    seen = observed_all([row[:9]], fractions)[0]
    if row.ends_us is None:
        return seen
    return replace(seen, due=timedelta(microseconds=row.ends_us - now_us))


def observed_all(rows: Iterable[SeenRow], fractions: UsageFractions) -> list[Observed]:
    """Tell of many machines.

    Tens of thousands are told of in one go on the event loop, so equal sizes share one value.
    """
    shared: dict[tuple[str, int, int, int], tuple[Power, Resources, Usage]] = {}
    seen: list[Observed] = []
    add, on = seen.append, Power.ON
    for number, uid, power, vcpus, memory_mib, disk_mib, addresses, change, had in rows:
        kind = (power, vcpus, memory_mib, disk_mib)
        values = shared.get(kind)
        if values is None:
            size, state = Resources(vcpus, memory_mib, disk_mib), Power(power)
            values = shared[kind] = (state, size, fractions.of(size, state))
        state, size, usage = values
        reachable = split_addresses(addresses) if state is on else ()
        known = (uid, f"{ID_PREFIX}{number}", state, size, change, reachable, usage)
        one = Observed(*known, live_migratable=True)
        add(one if had == volumes.NONE else replace(one, volumes=volumes.seen(had)))
    return seen
