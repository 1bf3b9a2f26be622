"""Volumes of simulated machines: one list of values for each machine, and those nobody has.

Takes core values and rows; what is refused here is refused in the words every driver uses.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace

from novacron.core.errors import OutOfCapacity, Rejected
from novacron.core.machine import MachineRef
from novacron.core.volume import (
    Access,
    Attachment,
    KeptVolume,
    SeenVolume,
    Volume,
    require_offered,
)
from novacron.drivers.simulation import statements as sql
from novacron.drivers.simulation.host import SimulatedHost
from novacron.drivers.simulation.store import Store

__all__ = ["NONE", "Had", "Shelf", "as_text", "from_text", "own_mib", "seen"]

NONE = "[]"
Refusal = type[OutOfCapacity | Rejected]


@dataclass(frozen=True, slots=True)
class Had:
    """One volume that a machine has, or had until it was taken off."""

    name: str
    id: str
    size_mib: int
    storage_class: str | None
    access: str
    attached: bool = True


def from_text(text: str) -> tuple[Had, ...]:
    """Return the volumes of a row."""
    return () if text == NONE else tuple(Had(**each) for each in json.loads(text))


def as_text(volumes: Iterable[Had]) -> str:
    """Return volumes as a row has them."""
    return json.dumps([asdict(each) for each in volumes])


def own_mib(volumes: Iterable[Had]) -> int:
    """Return how much of the host's own disk they take, attached or not."""
    return sum(each.size_mib for each in volumes if each.storage_class is None)


def seen(text: str) -> tuple[SeenVolume, ...]:
    """Tell of the volumes of a row."""
    return tuple(
        SeenVolume(
            each.name,
            each.size_mib,
            Attachment.ATTACHED if each.attached else Attachment.DETACHED,
            each.id,
            each.storage_class,
        )
        for each in from_text(text)
    )


@dataclass(frozen=True, slots=True)
class Shelf:
    """All volumes of one host, within one transaction."""

    store: Store
    host: SimulatedHost
    host_id: int

    def fitted(
        self,
        ref: MachineRef,
        wanted: tuple[Volume, ...],
        before: tuple[Had, ...],
        refusal: Refusal,
    ) -> tuple[Had, ...]:
        """Return the volumes a machine has once it has those it wants."""
        known = {each.id: each for each in before}
        having = [self._fit(ref, volume, known, refusal) for volume in wanted]
        ids = {each.id for each in having}
        return (*having, *(replace(each, attached=False) for each in before if each.id not in ids))

    def take(self, ref: MachineRef, volumes: Iterable[Had]) -> None:
        """Take volumes off the shelf that a machine has now."""
        for each in volumes:
            self.drop(ref.namespace, each.id)

    def kept(self) -> list[KeptVolume]:
        """Tell of volumes that no machine has; one that others see too is on one shelf only."""
        rows = self.store.run(sql.LIST_KEPT, self.host_id).fetchall()
        return [KeptVolume(*row[:4]) for row in rows]

    def delete(self, namespace: str, volume: str) -> bool:
        """Delete a volume; refuse one that a machine has, and say whether there was one."""
        self._require_unused(namespace, volume, but="")
        return self.drop(namespace, volume)

    def drop(self, namespace: str, volume: str) -> bool:
        """Delete a volume that is on the shelf; say whether it was."""
        return self.store.run(sql.TAKE_KEPT, self.host_id, namespace, volume).rowcount > 0

    def _fit(
        self, ref: MachineRef, volume: Volume, known: Mapping[str, Had], refusal: Refusal
    ) -> Had:
        self._require_class(volume, refusal)
        one = volume.id_for(ref.name, ref.uid)
        has_mib = known[one].size_mib if one in known else self._found(ref, volume, one, refusal)
        if has_mib > volume.size_mib:
            raise Rejected(
                f"volume {volume.name} has {has_mib}Mi and never shrinks: ask for at least that",
                reason="VolumeCannotShrink",
            )
        access = volume.access or Access.ONCE
        return Had(volume.name, one, volume.size_mib, volume.storage_class, access)

    def _found(self, ref: MachineRef, volume: Volume, one: str, refusal: Refusal) -> int:
        """Return the size of a volume that the machine does not have yet; nothing for a new one."""
        if volume.access is not Access.MANY:
            # Several may read one that nobody writes.
            beside = Access.READ_ONLY if volume.access is Access.READ_ONLY else ""
            self._require_unused(ref.namespace, one, but=ref.uid, beside=beside)
        values = (self.host_id, ref.namespace, one)
        found = self.store.run(sql.FIND_VOLUME, *values, *values).fetchone()
        if found is None and volume.existing is not None:
            raise refusal(
                f"there is no volume {one} of namespace {ref.namespace} on host {self.host.name}",
                reason="VolumeMissing",
            )
        return 0 if found is None else int(found[0])

    def _require_class(self, volume: Volume, refusal: Refusal) -> None:
        classes = {each.name: each.shared for each in self.host.storage_classes}
        require_offered(
            volume,
            shared=classes.get(volume.storage_class) if volume.storage_class else None,
            host=self.host.name,
            field="spec.simulation.storageClasses",
            refusal=refusal,
        )

    def _require_unused(self, namespace: str, volume: str, *, but: str, beside: str = "") -> None:
        """Refuse what a machine has but for one, or has for what many may do beside each other."""
        values = (self.host_id, namespace, volume, but, beside)
        found = self.store.run(sql.WHO_HAS, *values).fetchone()
        if found is not None:
            raise Rejected(
                f"volume {volume} is attached to {namespace}/{found[0]}: take it off that machine "
                "first",
                reason="VolumeInUse",
            )
