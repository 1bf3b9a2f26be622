"""Who of a host's machines has a volume. Blocks."""

from collections.abc import Callable, Iterable
from functools import partial

import libvirt

from novacron.core.errors import Rejected
from novacron.core.volume import IN_USE_AGAIN, Access
from novacron.drivers.libvirt.fitted import Fitted, serial_of
from novacron.drivers.libvirt.look import Domain, read_all
from novacron.drivers.libvirt.mark import Mark
from novacron.drivers.libvirt.storage import Storage

__all__ = ["holder", "require_unused"]


def holder(
    connection: libvirt.virConnect, is_it: Callable[[Fitted], bool], but: str = ""
) -> Mark | None:
    """Return the mark of a machine, but for one by its UID, that has a volume."""
    for domain in read_all(connection):
        mark = domain.configured.mark
        if mark.uid != but and any(is_it(each) and _has(domain, each) for each in mark.volumes):
            return mark
    return None


def require_unused(storage: Storage, volumes: Iterable[Fitted], uid: str) -> None:
    """Refuse volumes for a machine that another one of the host has.

    Several may write one that was made for it, or read one that nobody writes.
    """
    for volume in volumes:
        if volume.access == Access.MANY or storage.there(volume) is None:
            continue
        if mark := holder(storage.own.connection, partial(_excludes, volume), uid):
            raise Rejected(
                f"volume {volume.name} is attached to {mark.namespace}/{mark.name}: take it "
                "off that machine first",
                reason="VolumeInUse",
                again=IN_USE_AGAIN,
            )


def _excludes(volume: Fitted, other: Fitted) -> bool:
    both_read = other.access == volume.access == Access.READ_ONLY
    return other.key == volume.key and not both_read


def _has(domain: Domain, volume: Fitted) -> bool:
    """Say whether a volume is written down as a machine's, or its guest has not let go of it."""
    live = domain.running.disks if domain.running else frozenset()
    return not volume.detached or (volume.target, serial_of(volume.name)) in live
