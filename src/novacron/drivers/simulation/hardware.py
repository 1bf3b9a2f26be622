"""The devices of simulated hosts: which machine was handed which.

The host itself refuses to hand a device over twice, so that whoever decides by other books and
gets them wrong is found out. The table is made when the first device is handed over.
"""

from novacron.core.errors import OutOfCapacity
from novacron.core.machine import MachinePlan
from novacron.drivers.simulation.host import SimulatedHost
from novacron.drivers.simulation.store import Store

__all__ = ["hand_over", "hand_over_anew", "handed_over", "require_devices"]

TABLE = (
    "CREATE TABLE IF NOT EXISTS devices (host_id INTEGER NOT NULL, address TEXT NOT NULL, "
    "number INTEGER NOT NULL, PRIMARY KEY (host_id, address)) WITHOUT ROWID"
)
# Numbers of machines never come back, so a device of one that is gone is free.
FORGET_GONE = "DELETE FROM devices WHERE number NOT IN (SELECT number FROM machines)"
TAKEN = "SELECT address FROM devices WHERE host_id = ?"
HAND_OVER = "INSERT INTO devices (host_id, address, number) VALUES (?, ?, ?)"
GIVE_BACK = "DELETE FROM devices WHERE number = ?"
EVERY = (
    "SELECT hosts.name, address, uid FROM devices JOIN machines USING (number) "
    "JOIN hosts ON hosts.id = devices.host_id"
)


def hand_over_anew(store: Store, host: SimulatedHost, host_id: int, plan: MachinePlan) -> None:
    """Give a machine that has come the devices of this host, for those that it had elsewhere."""
    store.run(TABLE)
    row = store.machine(host_id, plan.ref.uid)
    assert row is not None, "it was looked at in the same turn"
    store.run(GIVE_BACK, row.number)
    hand_over(store, host, host_id, plan)


def require_devices(store: Store, host: SimulatedHost, host_id: int, plan: MachinePlan) -> None:
    """Refuse a machine whose devices are not there, or somebody else's."""
    store.run(TABLE)
    store.run(FORGET_GONE)
    has = {device.address for device in host.devices}
    taken = {address for (address,) in store.run(TAKEN, host_id)}
    for device in plan.devices:
        if device.address not in has:
            raise OutOfCapacity(f"host {host.name} has no device {device.address}")
        if device.address in taken:
            raise OutOfCapacity(f"device {device.address} of host {host.name} is in use")


def hand_over(store: Store, host: SimulatedHost, host_id: int, plan: MachinePlan) -> None:
    """Give a machine the devices that were chosen for it; all of them or none."""
    require_devices(store, host, host_id, plan)
    row = store.machine(host_id, plan.ref.uid)
    assert row is not None, "the machine was made or looked at in the same turn"
    for device in plan.devices:
        store.run(HAND_OVER, host_id, device.address, row.number)


def handed_over(store: Store) -> dict[tuple[str, str], str]:
    """Return the UID of the machine that has each device, by host and address."""
    store.run(TABLE)
    return {(host, address): uid for host, address, uid in store.run(EVERY)}
