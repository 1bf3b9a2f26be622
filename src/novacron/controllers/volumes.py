"""What becomes of a machine's volumes when it changes and when it goes."""

from collections.abc import Iterable

from novacron.controllers.round import Scope
from novacron.core.errors import Rejected
from novacron.core.machine import Observed
from novacron.core.steps import Done, Outcome
from novacron.core.volume import (
    APART,
    IN_USE_AGAIN,
    Access,
    Attachment,
    Hold,
    Reclaim,
    Volume,
    VolumeKeeping,
)

__all__ = ["leaving_volumes", "reclaim", "require_unused", "volumes_in_words"]


async def reclaim(scope: Scope) -> Outcome:
    """Delete those volumes of a machine that is gone which were to go with it.

    By what its owner said last. One that existed before the machine was never its own, and one
    that was taken off it is not on its list any more: both stay.
    """
    doomed = [
        volume
        for volume in scope.machine.volumes
        if volume.reclaim is Reclaim.DELETE and volume.existing is None
    ]
    free = [volume for volume in doomed if not _stays(scope, volume)]
    if free and isinstance(scope.driver, VolumeKeeping):
        scope.may_act()
        await scope.driver.reclaim(scope.machine.ref, free)
    return Done("Reclaimed", "no volume is left that was to go")


def _stays(scope: Scope, volume: Volume) -> bool:
    """Say whether a volume has become another machine's, of which its host may know nothing."""
    machine = scope.machine
    one = volume.id_for(machine.name, machine.uid)
    if (holder := scope.held(one, Hold.ASKS)) is None:
        return False
    scope.tell("VolumeKept", f"volume {one} stays: {holder} has it, or asks for it")
    return True


def require_unused(scope: Scope, volumes: Iterable[Volume]) -> None:
    """Refuse volumes that another machine has, wherever that is: a host knows only its own.

    Those that the machine has already are its own, and several may read what nobody writes.
    """
    machine, seen = scope.machine, scope.seen.volumes if scope.seen else ()
    having = {each.id for each in seen if each.attachment not in APART}
    for volume in volumes:
        one = volume.id_for(machine.name, machine.uid)
        if volume.access is Access.MANY or one in having:
            continue
        least = Hold.WRITES if volume.access is Access.READ_ONLY else Hold.READS
        if (holder := scope.held(one, least)) is not None:
            raise Rejected(
                f"volume {volume.name} is attached to {machine.namespace}/{holder}: take it off "
                "that machine first",
                reason="VolumeInUse",
                again=IN_USE_AGAIN,
            )


def leaving_volumes(seen: Observed) -> str:
    """Return which volumes a guest has not let go of, in words."""
    names = [each.name for each in seen.volumes if each.attachment is Attachment.DETACHING]
    return f"volume {', '.join(names)}" if names else ""


def volumes_in_words(volumes: Iterable[Volume]) -> str:
    """Return which volumes a machine has."""
    words = [f"{volume.name} ({volume.size_mib}Mi)" for volume in volumes]
    return f"volumes {', '.join(words)}" if words else "no volumes"
