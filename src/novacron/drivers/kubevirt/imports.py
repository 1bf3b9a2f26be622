"""Images and install media that CDI brings into a cluster, before a machine is made from them.

Each is a DataVolume. CDI is an addition to KubeVirt that may be missing; then machines that need
none are as well off, and those that do say so.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from novacron.core.conditions import Condition
from novacron.core.errors import Rejected
from novacron.core.image import Import, ImportState, Medium
from novacron.core.machine import MachinePlan, MachineRef
from novacron.core.quantity import format_mib
from novacron.core.volume import Reclaim, Volume
from novacron.drivers.kubevirt.belongings import Belongings
from novacron.drivers.kubevirt.cluster import Cluster
from novacron.drivers.kubevirt.convert import marks
from novacron.drivers.kubevirt.fetching import Fetching
from novacron.drivers.kubevirt.missing import Missing
from novacron.drivers.kubevirt.names import (
    ASKED,
    CLAIMS,
    DISK,
    IMPORTS,
    ISO,
    MEDIUM,
    RECLAIM,
    UID,
    claim_name,
)
from novacron.drivers.kubevirt.removal import remove
from novacron.drivers.kubevirt.view import by_name
from novacron.runtime.errors import AlreadyExists, NotFound

__all__ = ["Imports", "is_spent", "seen_imports"]

Object = dict[str, Any]

# Room for a medium whose owner does not say how much it needs.
ISO_ROOM_MIB = 10 * 1024
# Nobody uses the volume before the machine is made, which waits for the import.
AT_ONCE = "cdi.kubevirt.io/storage.bind.immediate.requested"
# Otherwise some versions of CDI delete an import that is done, which then looks like none.
DELETE_WHEN_DONE = "cdi.kubevirt.io/storage.deleteAfterCompletion"
SOURCE = "novacron.io/source"
STATES = {
    "Succeeded": ImportState.READY,
    "Failed": ImportState.FAILED,
    "ImportInProgress": ImportState.IMPORTING,
    "CloneInProgress": ImportState.IMPORTING,
}
INSTALL = "https://github.com/kubevirt/containerized-data-importer"


@dataclass(frozen=True, slots=True)
class Imports:
    """Sees to it that a machine's image and install medium are there."""

    cluster: Cluster
    owned: bool
    class_of: Callable[[Volume], str | None]
    fetching: Fetching

    async def ensure(self, plan: MachinePlan, has: Belongings) -> None:
        """Have all that the machine is made from; Missing while something is on its way."""
        known = {_disk_of(each): each for each in has.imports}
        waiting = []
        for name, medium in _wanted(plan):
            if name != ISO and has.machine is not None:
                continue  # what its disk was filled with is history
            found = known.get(name)
            if found is None or _state(found) is not ImportState.READY:
                secret = await self.fetching.secret_for(plan, name, medium)
                fetched = replace(medium, credentials=secret)
                found = found or await self._begin(plan, name, fetched)
            if _state(found) is ImportState.READY:
                await self._claimed(found, has)
            else:
                waiting.append(found)
        if waiting:
            raise _on_its_way(waiting[0])

    async def eject(self, plan: MachinePlan, has: Belongings) -> None:
        """Remove an install medium that is not wanted and that no guest has any more."""
        for each in has.imports:
            if plan.media.install is None and is_spent(each, has):
                await remove(self.cluster.client, IMPORTS, each)

    async def remove(self, ref: MachineRef) -> None:
        """Remove all that was brought for a machine; the claims go with it."""
        for each in list(self.cluster.imports.objects(ref.uid)):
            await remove(self.cluster.client, IMPORTS, each)
        await self.fetching.remove(ref)

    async def _begin(self, plan: MachinePlan, name: str, medium: Medium) -> Object:
        body = self._body(plan, name, medium)
        try:
            made = await self.cluster.client.create(IMPORTS, body)
        except AlreadyExists:
            return await self.cluster.client.get(
                IMPORTS, body["metadata"]["name"], plan.ref.namespace
            )
        except NotFound as error:
            raise _no_importer(medium) from error
        if medium.checksum and not _is_checked(made):
            await remove(self.cluster.client, IMPORTS, made)
            raise Rejected(
                "the cluster's CDI cannot check what it imports: leave checksum out, or have CDI "
                "upgraded",
                reason="ChecksumUnsupported",
            )
        self.cluster.imports.cache.seen(made)
        return made

    def _body(self, plan: MachinePlan, name: str, medium: Medium) -> Object:
        first = plan.first_disk
        is_iso = name == ISO
        size = (medium.size_mib or ISO_ROOM_MIB) if is_iso else plan.resources.disk_mib
        disk = Volume(name, size, first.storage_class, None if is_iso else first.access)
        storage: Object = {"resources": {"requests": {"storage": format_mib(size)}}}
        if (storage_class := self.class_of(disk)) is not None:
            storage["storageClassName"] = storage_class
        if disk.access is not None:
            storage["accessModes"] = [disk.access.value]
        if first.block is not None and not is_iso:
            storage["volumeMode"] = "Block" if first.block else "Filesystem"
        known_by = marks(plan, owned=self.owned)
        labels = {**known_by.pop("labels"), RECLAIM: Reclaim.DELETE.value}
        labels |= {MEDIUM: name} if is_iso else {DISK: name}
        return {
            "apiVersion": IMPORTS.api_version,
            "kind": IMPORTS.kind,
            "metadata": {
                "name": claim_name(plan.ref, name),
                "namespace": plan.ref.namespace,
                "labels": labels,
                "annotations": {
                    AT_ONCE: "true",
                    DELETE_WHEN_DONE: "false",
                    SOURCE: medium.source,
                    ASKED: format_mib(size),
                },
                **known_by,
            },
            "spec": {"source": _source(medium), "storage": storage},
        }

    async def _claimed(self, found: Object, has: Belongings) -> None:
        """Have the claim that CDI made known as the machine's."""
        metadata = found["metadata"]
        name = metadata["name"]
        if any(each["metadata"]["name"] == name for each in has.claims):
            return
        labels = {key: text for key, text in metadata["labels"].items() if _is_ours(key)}
        notes = {ASKED: metadata["annotations"].get(ASKED)}
        patch = {"metadata": {"labels": labels, "annotations": notes}}
        claim = await self.cluster.client.patch(CLAIMS, name, patch, metadata["namespace"])
        self.cluster.claims.cache.seen(claim)


def seen_imports(has: Belongings) -> tuple[Import, ...]:
    """Return how far each import is."""
    return tuple(_seen(each) for each in has.imports)


def is_spent(found: Object, has: Belongings) -> bool:
    """Say whether an install medium is in no template, and in no guest."""
    if _disk_of(found) != ISO or has.machine is None:
        return False
    wanted = by_name(has.machine["spec"]["template"]["spec"].get("volumes"))
    there = by_name(has.instance["spec"].get("volumes")) if has.instance else {}
    return ISO not in wanted and ISO not in there


def _wanted(plan: MachinePlan) -> Iterator[tuple[str, Medium]]:
    if plan.image:
        yield plan.first_disk.name, Medium(plan.image, plan.checksum, plan.media.credentials)
    if plan.media.install is not None:
        yield ISO, plan.media.install


def _source(medium: Medium) -> Object:
    kind, _, rest = medium.source.partition("://")
    if kind == "pvc":
        namespace, _, name = rest.partition("/")
        return {"pvc": {"namespace": namespace, "name": name}}
    told: Object = {"url": medium.source}
    if medium.credentials:
        told["secretRef"] = medium.credentials
    if medium.checksum:
        told["checksum"] = medium.checksum
    return {"registry" if kind == "docker" else "http": told}


def _is_checked(made: Object) -> bool:
    """Say whether the cluster kept the checksum: one that does not know the field drops it."""
    return any("checksum" in each for each in made["spec"]["source"].values())


def _is_ours(label: str) -> bool:
    return label.startswith(("novacron.io/", "vitistack.io/")) or label == UID


def _disk_of(found: Object) -> str:
    labels: dict[str, str] = found["metadata"]["labels"]
    return labels.get(MEDIUM) or labels.get(DISK, "")


def _state(found: Object) -> ImportState:
    phase = (found.get("status") or {}).get("phase", "")
    return STATES.get(phase, ImportState.PENDING)


def _seen(found: Object) -> Import:
    status = found.get("status") or {}
    told = str(status.get("progress", "")).rstrip("%")
    percent = int(float(told)) if told.replace(".", "", 1).isdigit() else None
    state = _state(found)
    return Import(
        disk=_disk_of(found),
        source=(found["metadata"].get("annotations") or {}).get(SOURCE, ""),
        state=state,
        percent=100 if state is ImportState.READY else percent,
        message="" if state is ImportState.READY else _why(status),
    )


def _why(status: Object) -> str:
    """Return what CDI says of an import that is not done."""
    told = [
        str(each.get("message") or "")
        for each in status.get("conditions") or ()
        if each.get("status") != "True"
    ]
    return next(filter(None, told), status.get("phase", ""))


def _on_its_way(found: Object) -> Missing:
    seen = _seen(found)
    what = "install medium" if seen.disk == ISO else "image"
    far = f", {seen.percent} %" if seen.percent is not None else ""
    why = f": {seen.message}" if seen.message else ""
    if seen.state is ImportState.FAILED:
        reason = "ImageFailed"
        message = f"the import of its {what} {seen.source} failed{why}; mend the source"
    else:
        reason = "ImageImporting"
        message = f"its {what} {seen.source} is being imported{far}{why}"
    return Missing(reason, message, Condition("StorageReady", "False", "PVCPending", message))


def _no_importer(medium: Medium) -> Missing:
    message = (
        f"{medium.source} has to be imported, and the cluster has nobody who does: install CDI "
        f"({INSTALL}), or leave the image out and have the disk filled some other way"
    )
    part = Condition("StorageReady", "False", "PVCPending", message)
    return Missing("ImporterMissing", message, part)
