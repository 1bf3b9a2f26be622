"""A look at all machines of a host at once, which is made again and again."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from novacron.core.machine import Observed, Power, Usage
from novacron.drivers.libvirt.build import Builder
from novacron.drivers.libvirt.domain import domain_uuid
from novacron.drivers.libvirt.growth import is_to_be_told
from novacron.drivers.libvirt.look import (
    Domain,
    Known,
    by_volume,
    needed_volumes,
    observed,
    read_all,
    unless_odd,
)
from novacron.drivers.libvirt.standstill import hindrance
from novacron.drivers.libvirt.storage import COMING
from novacron.drivers.libvirt.usage import Meter
from novacron.drivers.libvirt.writing import lacks_note

__all__ = ["Census", "at_rest", "look_at_all"]


class Census(NamedTuple):
    """How all machines are, what they use by UID, and about whom there is more to do, in time."""

    machines: list[Observed]
    usage: dict[str, Usage]
    due: tuple[str, ...]


def at_rest(seen: Observed) -> bool:
    """Say whether of a machine nothing is to be expected but news."""
    return (
        seen.power is Power.ON
        and seen.changing is None
        and seen.due is None
        and seen.hindered is None
        and not seen.volumes  # what they take is told under names that only a look finds
    )


def look_at_all(
    builder: Builder, meter: Meter, known: Known, lately: Mapping[str, Observed]
) -> Census:
    """Return how each machine is. Blocks.

    Those that were at rest when they were seen ``lately``, by their UUID, are only measured.
    """
    measured = meter.read(builder.connection)
    resting = {uuid: seen for uuid, seen in lately.items() if uuid in meter.states}
    ours = read_all(builder.connection, meter.states, resting.keys(), odd_too=False)
    usage = {
        each.uid: by_volume(measured[uuid], each)
        for each in ours
        if (uuid := domain_uuid(each.uid)) in measured
    }
    usage |= {
        # Without volumes, or it would not rest: what is measured by target are disks of ours.
        seen.uid: replace(measured[uuid], volumes_mib=())
        for uuid, seen in resting.items()
        if uuid in measured
    }
    names = builder.pool.names()
    files = builder.storage.files(
        {volume.pool for each in ours for volume in each.configured.mark.volumes}
    )
    # What may be half of a disk is none, until somebody who has the machine says that it is whole.
    files = frozenset(file for file in files if f"{file}{COMING}" not in files)
    fresh = replace(known, usage=usage)

    def is_complete(domain: Domain) -> bool:
        return needed_volumes(domain.configured) <= names

    def seen(domain: Domain) -> Observed:
        complete = is_complete(domain)
        hindered = hindrance(domain, builder.host.name)
        return observed(domain, fresh, complete=complete, files=files, hindered=hindered)

    if known.hearing is not None:
        places = known.hearing.places(each.uid for each in ours)
        ours.sort(key=lambda each: places[each.uid])
    found = [one for each in ours if (one := unless_odd(each.uid, partial(seen, each)))]
    found += [replace(each, usage=usage.get(each.uid)) for each in resting.values()]
    due = (
        each.uid
        for each in ours
        if is_to_be_told(each) or lacks_note(each, complete=is_complete(each))
    )
    return Census(found, usage, tuple(due))
