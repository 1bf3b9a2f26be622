"""Devices of a host, as statuses and records of every family have them."""

from collections.abc import Iterable
from typing import Any

from novacron.core.devices import HostDevice

__all__ = ["devices_of", "written_devices"]

Object = dict[str, Any]


def devices_of(written: Iterable[Object] | None) -> tuple[HostDevice, ...]:
    """Return devices as a status or a record has them."""
    return tuple(
        HostDevice(
            each["address"], each["type"], each["vendor"], each["model"], each.get("numaNode")
        )
        for each in written or ()
    )


def written_devices(devices: Iterable[HostDevice]) -> list[Object]:
    """Return devices for a status or a record."""
    return [
        {
            "address": device.address,
            "type": device.kind,
            "vendor": device.vendor,
            "model": device.model,
            **({} if device.numa_node is None else {"numaNode": device.numa_node}),
        }
        for device in devices
    ]
