"""What KubeVirt tells of a guest, much of it only where the guest has an agent.

Pure: objects in, facts out.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from novacron.core.guest_facts import GuestFacts, SeenNic

__all__ = ["facts_of_guest", "interfaces"]

Object = dict[str, Any]

RUNNING = "Running"
STOPPED = "Stopped"
# Words for a machine whose guest is there.
WITH_A_GUEST = frozenset({RUNNING, "Migrating", "Paused", "Stopping"})


def facts_of_guest(vm: Object | None, instance: Object | None) -> GuestFacts:
    """Return what is known of the guest of a VirtualMachine."""
    status = (instance or {}).get("status") or {}
    spec = (instance or {}).get("spec") or {}
    system = status.get("guestOSInfo") or {}
    named = (instance or {}).get("metadata", {}).get("name", "")
    return GuestFacts(
        state=str(status["phase"]) if status.get("phase") else _without_guest(vm),
        # Without a word about it the guest is told the name of its instance.
        hostname=str(spec.get("hostname") or named),
        architecture=str(spec.get("architecture") or ""),
        system=str(system.get("prettyName") or system.get("name") or ""),
        system_version=str(system.get("version") or system.get("versionId") or ""),
        kernel=str(system.get("kernelRelease") or ""),
        created=_time(vm["metadata"].get("creationTimestamp")) if vm else None,
        started=_time(_since(status)),
        nics=tuple(interfaces(instance)),
    )


def _without_guest(vm: Object | None) -> str:
    """Return what KubeVirt calls a machine without a guest, which it says a moment later."""
    said = str(((vm or {}).get("status") or {}).get("printableStatus", ""))
    return STOPPED if said in WITH_A_GUEST else said


def interfaces(instance: Object | None) -> Iterator[SeenNic]:
    """Return the interfaces that an instance has, those that were asked for by name."""
    for each in ((instance or {}).get("status") or {}).get("interfaces") or ():
        told = each.get("ipAddresses") or (each.get("ipAddress"),)
        addresses = tuple(dict.fromkeys(address for address in told if address))
        yield SeenNic(str(each.get("name") or ""), addresses, str(each.get("linkState") or ""))


def _since(status: Object) -> str | None:
    """Return when an instance that runs began to."""
    moments = [
        str(each["phaseTransitionTimestamp"])
        for each in status.get("phaseTransitionTimestamps") or ()
        if each.get("phase") == RUNNING
    ]
    return moments[-1] if moments and status.get("phase") == RUNNING else None


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
