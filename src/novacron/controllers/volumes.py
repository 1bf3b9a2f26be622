"""What becomes of a machine's volumes when it changes and when it goes."""

from collections.abc import Iterable

from novacron.controllers.round import Scope
from novacron.core.machine import Observed
from novacron.core.steps import Done, Outcome
from novacron.core.volume import Attachment, Reclaim, Volume, VolumeKeeping

__all__ = ["leaving_volumes", "reclaim", "volumes_in_words"]


async def reclaim(scope: Scope) -> Outcome:
    """Delete those volumes of a machine that is gone which were to go with it.

    By what its owner said last. One that existed before the machine was never its own, and one
    that was taken off it is not on its list any more: both stay.
    """
    doomed = [
        volume.name
        for volume in scope.machine.volumes
        if volume.reclaim is Reclaim.DELETE and volume.existing is None
    ]
    if doomed and isinstance(scope.driver, VolumeKeeping):
        scope.may_act()
        await scope.driver.reclaim(scope.machine.ref, doomed)
    return Done("Reclaimed", "no volume is left that was to go")


def leaving_volumes(seen: Observed) -> str:
    """Return which volumes a guest has not let go of, in words."""
    names = [each.name for each in seen.volumes if each.attachment is Attachment.DETACHING]
    return f"volume {', '.join(names)}" if names else ""


def volumes_in_words(volumes: Iterable[Volume]) -> str:
    """Return which volumes a machine has."""
    words = [f"{volume.name} ({volume.size_mib}Mi)" for volume in volumes]
    return f"volumes {', '.join(words)}" if words else "no volumes"
