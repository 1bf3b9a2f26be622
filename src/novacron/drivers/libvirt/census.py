"""A look at all machines of a host at once, which is made again and again."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import libvirt

from novacron.core.machine import Observed, Power, Usage
from novacron.drivers.libvirt.build import Builder
from novacron.drivers.libvirt.domain import domain_uuid
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
from novacron.drivers.libvirt.usage import Meter
from novacron.drivers.libvirt.writing import note_guest

__all__ = ["at_rest", "look_at_all"]

log = logging.getLogger(__name__)


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
) -> tuple[list[Observed], dict[str, Usage]]:
    """Return how each machine is, and what it uses by its UID. Blocks.

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
    fresh = replace(known, usage=usage)

    def seen(domain: Domain) -> Observed:
        if domain.running is not None and not domain.is_coming:
            _note_running(domain)
        complete = needed_volumes(domain.configured) <= names
        hindered = hindrance(domain, builder.host.name)
        return observed(domain, fresh, complete=complete, files=files, hindered=hindered)

    found = [one for each in ours if (one := unless_odd(each.uid, partial(seen, each)))]
    found += [replace(each, usage=usage.get(each.uid)) for each in resting.values()]
    return found, usage


def _note_running(domain: Domain) -> None:
    """Have it noted also of guests that were started before any such thing was written down."""
    try:
        note_guest(domain)
    except libvirt.libvirtError as error:
        log.debug("that %s has run is not noted before the next look: %s", domain.uid, error)
