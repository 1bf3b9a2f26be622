"""How objects of a KubeVirt cluster are read: entries by their names, conditions by their types."""

from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["as_requested", "by_name", "condition", "template_of"]

Object = dict[str, Any]


def condition(obj: Object | None, name: str) -> Mapping[str, str]:
    """Return what an object says under a name; nothing where it says nothing."""
    claims = ((obj or {}).get("status") or {}).get("conditions") or ()
    return next((each for each in claims if each["type"] == name), {})


def by_name(entries: Iterable[Object] | None) -> dict[str, Object]:
    """Return the entries of a list by their names."""
    return {each["name"]: each for each in entries or ()}


def template_of(vm: Object | None) -> Object:
    """Return what a VirtualMachine's instances are like; nothing where there is none."""
    found: Object = (((vm or {}).get("spec") or {}).get("template") or {}).get("spec") or {}
    return found


def as_requested(vm: Object) -> Object:
    """Return the template as it will be: with what was asked for and is under way.

    Disks are plugged by a request that KubeVirt notes in the status first, and interfaces go by
    being marked as absent until they are.
    """
    template: Object = vm["spec"]["template"]
    spec = template["spec"]
    devices = spec["domain"]["devices"]
    gone = {each["name"] for each in devices.get("interfaces") or () if _is_absent(each)}
    disks, volumes = by_name(devices.get("disks")), by_name(spec.get("volumes"))
    for request in (vm.get("status") or {}).get("volumeRequests") or ():
        if (added := request.get("addVolumeOptions")) is not None:
            name = added["name"]
            disks[name] = {**added["disk"], "name": name}
            volumes[name] = {**added["volumeSource"], "name": name}
        elif (removed := request.get("removeVolumeOptions")) is not None:
            disks.pop(removed["name"], None)
            volumes.pop(removed["name"], None)
    shown = {
        **devices,
        "disks": list(disks.values()),
        "interfaces": [e for e in devices.get("interfaces") or () if e["name"] not in gone],
    }
    networks = [each for each in spec.get("networks") or () if each["name"] not in gone]
    return {
        **template,
        "spec": {
            **spec,
            "domain": {**spec["domain"], "devices": shown},
            "volumes": list(volumes.values()),
            "networks": networks,
        },
    }


def _is_absent(interface: Object) -> bool:
    return interface.get("state") == "absent"
