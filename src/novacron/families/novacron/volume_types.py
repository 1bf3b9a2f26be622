"""Disks beside a machine's first one: as they are asked for, and as they are."""

from typing import Annotated, Literal

from pydantic import Field

from novacron.crd import ListMap, Model, PositiveQuantity, Rule
from novacron.families.shared_types import Amount, Amounts, Name

__all__ = [
    "KeptVolume",
    "Reservation",
    "StorageClassName",
    "Volume",
    "VolumeStatus",
    "volumes_stay_what_they_are",
]

StorageClassName = Annotated[str, Field(min_length=1, max_length=63)]
# Names of machines and volumes have no dots, and what a volume is called ends in eight digits.
_ID = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?[.][a-z0-9]([-a-z0-9]*[a-z0-9])?-[0-9a-f]{8}$"


class Volume(Model):
    """One disk beside the first."""

    __rules__ = (
        Rule(
            "!has(self.existing) || self.?reclaimPolicy.orValue('Retain') == 'Retain'",
            "a volume that existed before the machine is not deleted with it: leave reclaimPolicy "
            "out",
            field_path=".reclaimPolicy",
            reason="FieldValueForbidden",
        ),
        Rule(
            "self.?accessMode.orValue('ReadWriteOnce') != 'ReadOnlyMany' || has(self.existing)",
            "ReadOnlyMany needs existing: a new volume would stay empty for ever",
            field_path=".existing",
            reason="FieldValueRequired",
        ),
        Rule(
            "self.?accessMode.orValue('ReadWriteOnce') != 'ReadWriteMany' || "
            "has(self.storageClass)",
            "ReadWriteMany needs a storageClass that hosts share: their own storage is no other's",
            field_path=".storageClass",
            reason="FieldValueRequired",
        ),
    )

    name: Name
    """The volume's name within the machine; the guest finds the disk by it, as its serial number:
    of a name of more than 20 letters the first eleven, a dash and eight digits of its SHA-256."""
    size: PositiveQuantity
    """How large it is; it may grow and never shrink."""
    storage_class: StorageClassName | None = None
    """What kind of storage, by a name that hosts map to a pool; without it, the host's own."""
    access_mode: (
        Literal["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"] | None
    ) = None
    """Who may use it at the same time; without it, ReadWriteOnce. ReadWriteMany needs a storage
    class that is shared."""
    reclaim_policy: Literal["Delete", "Retain"] | None = None
    """What becomes of it when the machine is deleted; without it, Retain. One that is taken off the
    list is detached and kept in either case."""
    existing: (
        Annotated[
            str,
            Field(max_length=136),
            Rule(
                f"self.matches('{_ID}')",
                "must be the id of a volume as a machine's status.volumes or a host's "
                "status.keptVolumes tells it, such as db.data-1a2b3c4d",
            ),
        ]
        | None
    ) = None
    """The id of a volume of this namespace that was kept, attached in place of a new one."""


class VolumeStatus(Model):
    """A disk beside the first as it is."""

    name: str
    """The volume's name within the machine."""
    id: str
    """What it is called within the namespace; by this another machine can have it later."""
    size: Amount
    """How large it is."""
    storage_class: str | None = None
    """What kind of storage; without it, the host's own."""
    state: Literal[
        "Pending", "Attaching", "Attached", "Growing", "AwaitsRestart", "Detaching", "Detached"
    ]
    """Whether the machine has it. Detached ones are kept until somebody deletes them."""


class ReservedVolume(Model):
    """What a disk of a storage class takes of it."""

    id: str
    """What it is called within the namespace; one that several machines have takes room once."""
    storage_class: str
    """What kind of storage."""
    size: Amount
    """How much."""


class Reservation(Amounts):
    """What is set aside for a machine on its host."""

    volumes: Annotated[list[ReservedVolume], ListMap("id")] = []
    """What its disks take of storage classes; all others are part of the disk space."""


class KeptVolume(Model):
    """A disk whose machine is gone."""

    namespace: str
    """Whose it is."""
    id: str
    """What it is called within the namespace."""
    size: Amount
    """How large it is."""
    storage_class: str | None = None
    """What kind of storage; without it, the host's own."""


def volumes_stay_what_they_are(volumes: str) -> tuple[Rule, ...]:
    """Return the rules that volumes grow and change in no other way, by where the list is."""
    pairs = f"!has(self.{volumes}) || !has(oldSelf.{volumes}) || self.{volumes}.all(new,"
    same = f" oldSelf.{volumes}.all(old, new.name != old.name || "
    return (
        Rule(
            f"{pairs}{same}!quantity(string(new.size)).isLessThan(quantity(string(old.size)))))",
            "volumes can grow but never shrink",
            field_path=f".{volumes}",
        ),
        *(
            Rule(
                f"{pairs}{same}(has(new.{field}) == has(old.{field})"
                f" && (!has(new.{field}) || new.{field} == old.{field}))))",
                f"{field} of a volume cannot change: take the volume off the list, which keeps its "
                "data, and add one with another name",
                field_path=f".{volumes}",
            )
            for field in ("storageClass", "accessMode", "existing")
        ),
    )
