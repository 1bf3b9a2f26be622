"""A machine's disks as claims for volumes: made, grown, never shrunk."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from novacron.core.conditions import Condition
from novacron.core.errors import Rejected
from novacron.core.machine import MachinePlan
from novacron.core.quantity import format_mib
from novacron.core.volume import Access, Reclaim, Volume
from novacron.drivers.kubevirt.belongings import Belongings
from novacron.drivers.kubevirt.claim_checks import (
    USUAL,
    require_possible,
    require_same,
    require_staying,
)
from novacron.drivers.kubevirt.cluster import Cluster
from novacron.drivers.kubevirt.convert import marks
from novacron.drivers.kubevirt.disks import asked_mib, claimed_mib
from novacron.drivers.kubevirt.missing import Missing, is_namespace, name_taken, no_namespace
from novacron.drivers.kubevirt.modes import claim_modes
from novacron.drivers.kubevirt.names import ASKED, CLAIMS, DISK, GROWN, RECLAIM, VOLUME, claim_name
from novacron.drivers.kubevirt.ownership import belongs_to, is_known, known_again
from novacron.runtime.errors import AlreadyExists, NotFound
from novacron.runtime.resource import Key, Resource

__all__ = ["Claims", "claimed_volumes"]

Object = dict[str, Any]

PROFILES = Resource(
    "cdi.kubevirt.io", "v1beta1", "storageprofiles", "StorageProfile", namespaced=False
)
IS_DEFAULT = "storageclass.kubernetes.io/is-default-class"
# So long what a profile said is good for, also that there is none.
FRESH_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Claims:
    """Sees to it that a machine's disks are claimed in one cluster."""

    cluster: Cluster
    owned: bool
    _profiles: dict[str, tuple[list[Object], float]] = field(default_factory=dict)
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def ensure(self, plan: MachinePlan, has: Belongings) -> tuple[Object, ...]:
        """Have a claim for each disk, as large as was asked for; return them all."""
        known = {claim["metadata"]["labels"][DISK]: claim for claim in has.claims}
        wanted = {disk.name: disk for disk in _disks(plan)}
        for name, disk in wanted.items():
            require_possible(disk, known.get(name))
            if has.machine is None and (claim := known.get(name)) is not None:
                require_staying(claim)
        for name, disk in wanted.items():
            if (claim := known.get(name)) is None:
                known[name] = await self._make(plan, disk)
                continue
            require_same(claim, disk)
            if disk.size_mib > asked_mib(claim):
                claim = await self._grow(claim, disk, has.instance)
            known[name] = await self._fated(plan, claim, disk.reclaim)
        for name in known.keys() - wanted.keys():
            # What was taken off a machine is nobody's to delete but its owner's.
            known[name] = await self._fated(plan, known[name], Reclaim.RETAIN)
        return tuple(known.values())

    async def _fated(self, plan: MachinePlan, claim: Object, reclaim: Reclaim) -> Object:
        """Have a claim go with its machine or stay, as it is wanted by now."""
        metadata = claim["metadata"]
        if metadata["labels"].get(RECLAIM) == reclaim.value:
            return claim
        goes = self.owned and reclaim is Reclaim.DELETE
        owners = marks(plan, owned=goes).get("ownerReferences")
        patch = {"metadata": {"labels": {RECLAIM: reclaim.value}, "ownerReferences": owners}}
        return await self._patched(metadata, patch)

    async def _make(self, plan: MachinePlan, disk: Volume) -> Object:
        storage_class = self.class_of(disk)
        body = await self._claim(plan, disk, storage_class)
        try:
            made = await self.cluster.client.create(CLAIMS, body)
        except NotFound as error:
            if is_namespace(error):
                raise no_namespace(self.cluster.name, plan.ref.namespace) from error
            raise
        except AlreadyExists:
            name = body["metadata"]["name"]
            made = await self.cluster.client.get(CLAIMS, name, plan.ref.namespace)
            require_staying(made)
            if not belongs_to(made, plan.ref.uid):
                remedy = "give the disk another name"
                raise name_taken(CLAIMS.kind, name, "StorageReady", remedy) from None
            if not is_known(made, plan.ref.uid):
                made = await self._patched(made["metadata"], known_again(body))
        self.cluster.claims.cache.seen(made)
        return made

    def class_of(self, disk: Volume) -> str | None:
        """Return the class a claim is to name; None leaves it to the cluster."""
        name, classes = disk.storage_class, self.cluster.classes
        if name is not None and classes.get(Key("", name)) is not None:
            return name
        usual: str | None = next(
            (
                each["metadata"]["name"]
                for each in classes.objects()
                if (each["metadata"].get("annotations") or {}).get(IS_DEFAULT) == "true"
            ),
            None,
        )
        if name in (None, USUAL) and usual is not None:
            return usual
        known = ", ".join(sorted(each["metadata"]["name"] for each in classes.objects())) or "none"
        what = f"StorageClass {name}" if name not in (None, USUAL) else "default StorageClass"
        message = (
            f"disk {disk.name} asks for a {what} and the cluster has no such (it has: {known}): "
            "create it or name another one"
        )
        part = Condition("StorageReady", "False", "PVCPending", message)
        raise Missing("StorageClassNotFound", message, part, followed=True)

    async def _claim(self, plan: MachinePlan, disk: Volume, storage_class: str | None) -> Object:
        access, block = disk.access, disk.block
        if access is None or block is None:
            usual = await self._usual(storage_class)
            access, block = claim_modes(access, usual, block=block)
        goes = disk.reclaim is Reclaim.DELETE
        known_by = marks(plan, owned=self.owned and goes)
        labels = {**known_by.pop("labels"), DISK: disk.name, RECLAIM: disk.reclaim.value}
        metadata = {
            "name": claim_name(plan.ref, disk.name),
            "namespace": plan.ref.namespace,
            "labels": labels,
            "annotations": {
                VOLUME: disk.id_for(plan.ref.name, plan.ref.uid),
                ASKED: format_mib(disk.size_mib),
            },
            **known_by,
        }
        spec: Object = {
            "accessModes": [access.value],
            "volumeMode": "Block" if block else "Filesystem",
            "resources": {"requests": {"storage": format_mib(disk.size_mib)}},
        }
        if storage_class is not None:
            spec["storageClassName"] = storage_class
        return {
            "apiVersion": CLAIMS.api_version,
            "kind": CLAIMS.kind,
            "metadata": metadata,
            "spec": spec,
        }

    async def _usual(self, storage_class: str | None) -> list[Object]:
        """Return how volumes of a class are best used, where CDI has an opinion about that."""
        if storage_class is None:
            return []
        async with self._asking:  # many claims of one class need one answer
            clock = asyncio.get_running_loop().time()
            sets, asked = self._profiles.get(storage_class, ([], -FRESH_SECONDS))
            if clock - asked >= FRESH_SECONDS:
                sets = await self._profile(storage_class)
                self._profiles[storage_class] = sets, clock
            return sets

    async def _profile(self, storage_class: str) -> list[Object]:
        try:
            profile = await self.cluster.client.get(PROFILES, storage_class)
        except NotFound:
            return []
        found: list[Object] = (profile.get("status") or {}).get("claimPropertySets") or []
        return found

    async def _grow(self, claim: Object, disk: Volume, instance: Object | None) -> Object:
        metadata = claim["metadata"]
        name = claim["spec"].get("storageClassName")
        found = self.cluster.classes.get(Key("", name)) if name else None
        if found is not None and not found.get("allowVolumeExpansion"):
            raise Rejected(
                f"disk {disk.name} cannot grow: StorageClass {name} does not allow it "
                "(allowVolumeExpansion)",
                reason="CannotGrow",
            )
        grown_under = instance["metadata"]["uid"] if instance else None
        # By as much more as is asked for: what others claimed beyond that serves their own ends.
        size = format_mib(claimed_mib(claim) + disk.size_mib - asked_mib(claim))
        patch = {
            "metadata": {"annotations": {GROWN: grown_under, ASKED: format_mib(disk.size_mib)}},
            "spec": {"resources": {"requests": {"storage": size}}},
        }
        return await self._patched(metadata, patch)

    async def _patched(self, metadata: Object, patch: Object) -> Object:
        changed = await self.cluster.client.patch(
            CLAIMS, metadata["name"], patch, metadata["namespace"]
        )
        self.cluster.claims.heard(changed)
        return changed


def _disks(plan: MachinePlan) -> Iterator[Volume]:
    """Return all disks of a machine; its first one goes when it goes."""
    first = plan.first_disk
    yield Volume(
        first.name,
        plan.resources.disk_mib,
        first.storage_class,
        first.access,
        Reclaim.DELETE,
        block=first.block,
    )
    yield from plan.volumes or ()


def claimed_volumes(has: Belongings) -> tuple[Volume, ...]:
    """Return the volumes that a machine has beside its first disk, as they were asked for."""
    template = (has.machine or {})["spec"]["template"]["spec"]
    buses = {each["name"]: each["disk"]["bus"] for each in template["domain"]["devices"]["disks"]}
    _, *others = (each["name"] for each in template["volumes"] if "persistentVolumeClaim" in each)
    claims = {claim["metadata"]["labels"].get(DISK): claim for claim in has.claims}
    return tuple(_volume(claims[name], buses.get(name)) for name in others if name in claims)


def _volume(claim: Object, bus: str | None) -> Volume:
    spec, labels = claim["spec"], claim["metadata"]["labels"]
    return Volume(
        labels[DISK],
        asked_mib(claim),
        spec.get("storageClassName"),
        Access(spec["accessModes"][0]),
        Reclaim(labels.get(RECLAIM, Reclaim.RETAIN)),
        block=spec.get("volumeMode") == "Block",
        bus=bus,
    )
