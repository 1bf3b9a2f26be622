"""Makes simulation drivers from Hosts that ask for one."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from novacron.core.devices import HostDevice
from novacron.core.host import DeclaredHost
from novacron.core.machine import Resources
from novacron.core.quantity import mib, parse_duration
from novacron.core.volume import StorageClass
from novacron.drivers.simulation import (
    Delays,
    Fault,
    Operation,
    SimulatedHost,
    SimulationDriver,
    UsageFractions,
)

__all__ = ["simulation_driver"]


def simulation_driver(host: DeclaredHost, default_file: Path) -> SimulationDriver:
    """Return the driver of a simulated host; its endpoint may name another file."""
    settings = host.settings
    capacity = _amount(settings["capacity"])
    delays = settings.get("delays") or {}
    simulated = SimulatedHost(
        name=host.name,
        capacity=capacity,
        allocatable=host.overcommit.of(capacity),
        delays=Delays(**{name: parse_duration(text) for name, text in delays.items()}),
        faults=tuple(_fault(fault) for fault in settings.get("faults") or ()),
        usage=UsageFractions(**(settings.get("usage") or {})),
        storage_classes=tuple(map(_storage_class, settings.get("storageClasses") or ())),
        devices=tuple(_device(device) for device in settings.get("devices") or ()),
        migration_tls=(settings.get("migration") or {}).get("tls", True),
    )
    file = Path(host.endpoint.removeprefix("file://")) if host.endpoint else default_file
    return SimulationDriver(file, simulated)


def _amount(capacity: Mapping[str, Any]) -> Resources:
    return Resources(capacity["cpu"], mib(capacity["memory"]), mib(capacity["disk"]))


def _storage_class(declared: Mapping[str, Any]) -> StorageClass:
    size = declared.get("size")
    shared = bool(declared.get("shared"))
    return StorageClass(declared["name"], shared, None if size is None else mib(size))


def _device(device: Mapping[str, Any]) -> HostDevice:
    return HostDevice(
        device["address"],
        device["type"],
        device.get("vendor") or "",
        device.get("model") or "",
        device.get("numaNode"),
    )


def _fault(fault: Mapping[str, Any]) -> Fault:
    return Fault(
        operation=Operation(fault["operation"]),
        error=fault["error"],
        rate=fault.get("rate", 1.0),
        machine=fault.get("machines") or "*",
        message=fault.get("message") or "",
    )
