"""Disks and interfaces that come and go while a machine runs.

A disk is plugged by a request of its own, because a disk that is merely written into the template
waits for a restart. An interface comes with the template, and goes by being marked in it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import orjson

from novacron.core.machine import MachineRef
from novacron.drivers.kubevirt.changes import pluggable_disk, pluggable_nic, plugged
from novacron.drivers.kubevirt.names import CLOUD_INIT, SUBRESOURCES
from novacron.drivers.kubevirt.settings import Settings
from novacron.drivers.kubevirt.view import as_requested, by_name, condition, template_of
from novacron.runtime.client import Client, Request

__all__ = ["Plugs", "joined", "plugs_of"]

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Plugs:
    """What is to be plugged into a running machine, and what pulled out, by names."""

    more: tuple[tuple[Object, Object], ...] = ()
    less: tuple[str, ...] = ()

    async def order(self, client: Client, ref: MachineRef) -> None:
        """Ask KubeVirt for it, disk by disk."""
        for name in self.less:
            await _ask(client, ref, "removevolume", {"name": name})
        for disk, volume in self.more:
            source = {name: value for name, value in volume.items() if name != "name"}
            body = {"name": disk["name"], "disk": disk, "volumeSource": source}
            await _ask(client, ref, "addvolume", body)


def plugs_of(vm: Object, instance: Object | None, wanted: Object, settings: Settings) -> Plugs:
    """Return which disks of a template a running machine gets, or loses, by a request."""
    if instance is None or (instance.get("status") or {}).get("phase") != "Running":
        return Plugs()
    planned = as_requested(vm)["spec"]
    before, after = by_name(planned["volumes"]), by_name(wanted["volumes"])
    disks = by_name(wanted["domain"]["devices"]["disks"])
    # One that it was started with goes with a restart only: until then it need not come back.
    fixed = by_name(instance["spec"].get("volumes")).keys() - plugged(instance)
    more = [
        (disks[name], after[name])
        for name in sorted(after.keys() - before.keys() - fixed)
        if name != CLOUD_INIT and pluggable_disk(disks[name], settings) is None
    ]
    less = (before.keys() - after.keys()) & plugged(instance)
    return Plugs(tuple(more), tuple(sorted(less)) if settings.volumes_pluggable else ())


def joined(vm: Object, instance: Object | None, wanted: Object, plugs: Plugs) -> Object:
    """Return the template to write: what is plugged by a request stays out of it or in it."""
    now = template_of(vm)
    left_out = {disk["name"] for disk, _ in plugs.more}
    kept = set(plugs.less) | _requested(vm)
    devices, old = wanted["domain"]["devices"], now["domain"]["devices"]
    volumes = _with(wanted["volumes"], now.get("volumes"), left_out, kept)
    leaving = _leaving(instance, wanted, now)
    return {
        **wanted,
        "domain": {
            **wanted["domain"],
            "devices": {
                **devices,
                "disks": _with(devices["disks"], old.get("disks"), left_out, kept),
                "interfaces": [*devices["interfaces"], *leaving.values()],
            },
        },
        "networks": [
            *wanted["networks"],
            *(each for each in now.get("networks") or () if each["name"] in leaving),
        ],
        "volumes": [_as_plugged(each, by_name(now.get("volumes"))) for each in volumes],
    }


def _requested(vm: Object) -> set[str]:
    """Return the disks about which a request is under way: KubeVirt itself writes them."""
    asked = (vm.get("status") or {}).get("volumeRequests") or ()
    found = (each.get("addVolumeOptions") or each.get("removeVolumeOptions") for each in asked)
    return {each["name"] for each in found if each}


def _with(
    wanted: Iterable[Object], now: Iterable[Object] | None, left_out: set[str], kept: set[str]
) -> list[Object]:
    before = by_name(now)
    entries = [each for each in wanted if each["name"] not in left_out | kept]
    return [*entries, *(before[name] for name in sorted(kept) if name in before)]


def _as_plugged(volume: Object, before: dict[str, Object]) -> Object:
    """Return a volume with the mark that it was plugged, if it was: taking it off is a change."""
    old = before.get(volume["name"]) or {}
    kind = "persistentVolumeClaim"
    if not (old.get(kind) or {}).get("hotpluggable") or kind not in volume:
        return volume
    return {**volume, kind: {**volume[kind], "hotpluggable": True}}


def _leaving(instance: Object | None, wanted: Object, now: Object) -> dict[str, Object]:
    """Return the interfaces that a running guest is to let go of, marked so."""
    if instance is None or condition(instance, "LiveMigratable").get("status") == "False":
        return {}
    after = by_name(wanted["domain"]["devices"]["interfaces"])
    has = by_name(instance["spec"]["domain"]["devices"].get("interfaces"))
    networks = by_name(now.get("networks"))
    return {
        each["name"]: {**each, "state": "absent"}
        for each in now["domain"]["devices"].get("interfaces") or ()
        if each["name"] not in after
        and each["name"] in has
        and pluggable_nic(each, networks[each["name"]]) is None
    }


async def _ask(client: Client, ref: MachineRef, what: str, body: Object) -> None:
    path = SUBRESOURCES.path(ref.namespace, ref.name, what)
    await client.send(Request("update", "PUT", path, {}, orjson.dumps(body)))
