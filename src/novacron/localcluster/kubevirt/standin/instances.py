"""The guests that are played: what virt-handler would write into a VirtualMachineInstance."""

import zlib
from copy import deepcopy
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from novacron.localcluster.kubevirt.names import INSTANCES
from novacron.localcluster.kubevirt.standin.disks import set_disks
from novacron.localcluster.kubevirt.standin.migratable import set_condition, set_migratable
from novacron.localcluster.kubevirt.standin.migrating import migrate
from novacron.localcluster.kubevirt.standin.pods import is_active, is_over
from novacron.localcluster.kubevirt.standin.wishes import failure, held
from novacron.localcluster.kubevirt.standin.world import World, now
from novacron.runtime.events import Events
from novacron.runtime.resource import Key, Object

__all__ = ["Instances"]

MACHINE = {"type": "pc-q35-rhel9.6.0"}
SAID = {
    "Running": ("Started", "VirtualMachineInstance started."),
    "Succeeded": ("Stopped", "The VirtualMachineInstance was shut down."),
}
SYNC_FAILED = "Synchronizing with the Domain failed."


@dataclass(slots=True)
class Instances:
    """All instances on nodes of ours."""

    world: World
    events: Events

    async def reconcile(self, key: Key) -> timedelta | None:
        """Say of one instance what its virt-handler would."""
        instance = self.world.instances.get(key)
        if instance is None or held(instance):
            return None
        status = instance.get("status") or {}
        if status.get("phase") not in ("Scheduled", "Running"):
            return None
        wanted = deepcopy(instance)
        self._play(wanted)
        if wanted != instance:
            await self.world.handler.replace(INSTANCES, wanted)
            self._tell(instance, wanted)
        return None

    def _tell(self, before: Object, after: Object) -> None:
        """Say in events what virt-handler says in them."""
        was, phase = before["status"]["phase"], after["status"]["phase"]
        if phase == "Failed" and (message := failure([after])):
            self.events.warning(after, "SyncFailed", message)
        if phase != was and phase in SAID:
            self.events.normal(after, *SAID[phase])
        elif phase != was:
            self.events.warning(after, "Stopped", "The VirtualMachineInstance crashed.")
        if before["status"].get("nodeName") != (node := after["status"].get("nodeName")):
            said = f"The VirtualMachineInstance migrated to node {node}."
            self.events.normal(after, "Migrated", said)

    def _play(self, instance: Object) -> None:
        """Change the instance into what it would say next."""
        status, pods = instance["status"], self.world.pods_of(instance)
        if not self.world.alive(status.get("nodeName")):
            return
        active = [pod for pod in pods if is_active(pod, instance)]
        ending = any("deletionTimestamp" in pod["metadata"] for pod in active)
        if "deletionTimestamp" in instance["metadata"] or ending:
            _turn(instance, "Succeeded")
        elif message := failure([instance]):
            _fail(instance, message)
        elif not active and any(is_over(pod) for pod in pods):
            _turn(instance, "Failed")
        elif active:
            self._run(instance, active[0], pods)

    def _run(self, instance: Object, pod: Object, pods: list[Object]) -> None:
        status = instance["status"]
        _turn(instance, "Running")
        status["selinuxContext"] = "none"
        status["machine"] = MACHINE
        status["migrationTransport"] = "Unix"
        _set_interfaces(instance, pod)
        _set_memory(instance)
        set_disks(instance)
        set_migratable(instance)
        move = status.get("migrationState") or {}
        if self.world.alive(move.get("targetNode")):
            migrate(instance, pods, self.world.migration(move.get("migrationUid")))


def _turn(instance: Object, phase: str) -> None:
    status = instance["status"]
    if status["phase"] == phase:
        return
    status["phase"] = phase
    # Without the moment of a phase KubeVirt takes a restart for a crash.
    entry = {"phase": phase, "phaseTransitionTimestamp": now()}
    status.setdefault("phaseTransitionTimestamps", []).append(entry)


def _fail(instance: Object, message: str) -> None:
    set_condition(instance, "Synchronized", "False", SYNC_FAILED, message)
    _turn(instance, "Failed")


def _set_memory(instance: Object) -> None:
    domain = instance["spec"]["domain"]
    requests = (domain.get("resources") or {}).get("requests") or {}
    guest = (domain.get("memory") or {}).get("guest") or requests.get("memory")
    memory = instance["status"].setdefault("memory", {})
    if not guest:
        return
    memory.setdefault("guestAtBoot", guest)
    memory.setdefault("guestRequested", guest)
    memory["guestCurrent"] = memory["guestRequested"]


def _set_interfaces(instance: Object, pod: Object) -> None:
    """Give each interface an address: the pod's, or one that stays with its MAC address."""
    networks = {network["name"]: network for network in instance["spec"].get("networks") or ()}
    known = {each["name"]: each for each in instance["status"].get("interfaces") or ()}
    pod_address = (pod.get("status") or {}).get("podIP")
    given = []
    for interface in instance["spec"]["domain"]["devices"].get("interfaces") or ():
        name = interface["name"]
        if interface.get("state") == "absent":
            continue  # the guest lets go of it at once
        before = known.get(name) or {}
        mac = interface.get("macAddress") or before.get("mac") or _mac(instance, name)
        on_pod = "pod" in (networks.get(name) or {"pod": {}})
        address = pod_address if on_pod else _address(mac)
        given.append(before | _interface(name, mac, address, before))
    if given:
        instance["status"]["interfaces"] = given


def _interface(name: str, mac: str, address: str | None, before: Object) -> Object:
    sources = [part for part in (before.get("infoSource") or "").split(", ") if part]
    if "domain" not in sources:
        sources.insert(0, "domain")
    stated: dict[str, Any] = {
        "name": name,
        "mac": mac,
        "infoSource": ", ".join(sources),
        "queueCount": 1,
        "linkState": "up",
    }
    return stated | ({"ipAddress": address, "ipAddresses": [address]} if address else {})


def _mac(instance: Object, name: str) -> str:
    number = zlib.crc32(f"{instance['metadata']['uid']}/{name}".encode())
    return ":".join(("02", "00", *(f"{byte:02x}" for byte in number.to_bytes(4, "big"))))


def _address(mac: str) -> str:
    number = zlib.crc32(mac.lower().encode())
    return f"192.168.{number % 254 + 1}.{(number >> 8) % 253 + 2}"
