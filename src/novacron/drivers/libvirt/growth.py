"""Has a guest use what it was given while it ran, through its agent.

What its disk grew by, with partition and file system, and CPUs, which many a Linux leaves off line.
A guest without an agent, and one whose disks are laid out in a way that is not understood here,
finds the larger disk and the CPUs and does with them what it likes.

That a disk grew stays in the mark until an agent was told: it may come long after its guest does.
"""

import json
import logging
from dataclasses import replace

import libvirt
import libvirt_qemu

from novacron.drivers.libvirt.agent import REFUSED, Agent
from novacron.drivers.libvirt.errors import sentence
from novacron.drivers.libvirt.fitted import Fitted, serial_of
from novacron.drivers.libvirt.look import Domain
from novacron.drivers.libvirt.mark import set_mark
from novacron.drivers.libvirt.snapshot_record import records

__all__ = ["is_to_be_told", "tell_of_growth", "use_cpus"]

log = logging.getLogger(__name__)

AGENT_SECONDS = 5
# Of the disk with this serial number, or of the one with the root if none is given: the last
# partition grows into what is free behind it, and every mounted file system into its partition.
GROW = r"""
serial=$1
of() { basename "$(readlink -f "$1")"; }
disk_of() {
    if [ -e "/sys/class/block/$1/partition" ]; then of "/sys/class/block/$1/.."; else echo "$1"; fi
}
mounted() {
    while read -r device where kind _; do
        case $device in
        /dev/*) [ -b "$device" ] && printf '%s\n' "$(of "$device") $where $kind" ;;
        esac
    done </proc/mounts
}
# The kernel writes blanks in names of places like this, which echo of some shells undoes too.
place() { printf '%s\n' "$1" | sed 's/\\040/ /g'; }
wanted=
if [ -n "$serial" ]; then
    for each in /sys/class/block/*/serial; do
        [ "$(cat "$each")" = "$serial" ] && wanted=$(of "${each%/serial}")
    done
else
    wanted=$(mounted | while read -r name where _; do [ "$where" = / ] && disk_of "$name"; done)
fi
[ -n "$wanted" ] || exit 0
mounted | while read -r name where kind; do
    [ "$(disk_of "$name")" = "$wanted" ] || continue
    if [ -e "/sys/class/block/$name/partition" ]; then
        growpart "/dev/$wanted" "$(cat "/sys/class/block/$name/partition")"
    fi
    case $kind in
    ext[234]) resize2fs "/dev/$name" ;;
    xfs) xfs_growfs "$(place "$where")" ;;
    btrfs) btrfs filesystem resize max "$(place "$where")" ;;
    esac
done
"""


# The kernel takes a moment to find them. Those that somebody put off line on purpose stay so, where
# there are as many on line as the machine has.
PUT_ON_LINE = r"""
wanted=$1
on_line() {
    count=0
    for cpu in /sys/devices/system/cpu/cpu[0-9]*; do
        if [ ! -e "$cpu/online" ] || [ "$(cat "$cpu/online")" = 1 ]; then count=$((count + 1)); fi
    done
    echo "$count"
}
for second in 1 2 3 4 5 6 7 8 9 10; do
    for switch in /sys/devices/system/cpu/cpu[0-9]*/online; do
        [ "$(on_line)" -lt "$wanted" ] || exit 0
        [ "$(cat "$switch")" = 1 ] || echo 1 >"$switch"
    done
    sleep 1
done
"""


def is_to_be_told(domain: Domain) -> bool:
    """Say whether a guest has disks that grew unbeknown to it, and an agent to be told by."""
    if domain.running is None or not domain.running.agent:
        return False
    return domain.configured.mark.untold or any(_has(domain, it) for it in _grown(domain))


def tell_of_growth(domain: Domain) -> None:
    """Tell a guest what grew, and write down that it knows; a silent one is told another time."""
    mark, told = domain.configured.mark, set[str]()
    serials = [""] if mark.untold else []
    serials += [serial_of(each.name) for each in _grown(domain) if _has(domain, each)]
    for serial in serials:
        if not grow_file_systems(domain.handle, serial):
            break
        told.add(serial)
    volumes = tuple(
        replace(each, untold=each.untold and serial_of(each.name) not in told)
        for each in mark.volumes
    )
    after = replace(mark, untold=mark.untold and "" not in told, volumes=volumes)
    if after != mark:
        set_mark(domain.handle, after, libvirt.VIR_DOMAIN_AFFECT_CONFIG)


def _grown(domain: Domain) -> list[Fitted]:
    return [each for each in domain.configured.mark.volumes if each.untold and not each.detached]


def _has(domain: Domain, volume: Fitted) -> bool:
    live = domain.running.disks if domain.running else frozenset()
    return (volume.target, serial_of(volume.name)) in live


def grow_file_systems(handle: libvirt.virDomain, serial: str = "") -> bool:
    """Start the growth inside a guest, of one disk or of the first; say whether it knows of it.

    What comes of it is its own, also that it lets nobody start anything. But one whose file systems
    are at rest lets nobody do so only until they go on.
    """
    return _start(handle, "its disk grew", GROW, serial)


def use_cpus(handle: libvirt.virDomain, count: int) -> None:
    """Have a guest put CPUs on line until it uses so many; what comes of it is its own."""
    _start(handle, "it has more CPUs", PUT_ON_LINE, str(count))


def _start(handle: libvirt.virDomain, news: str, script: str, argument: str) -> bool:
    """Start a script inside a guest; say whether its agent did, or never will."""
    arguments = {"path": "/bin/sh", "arg": ["-c", script, "novacron", argument]}
    question = json.dumps({"execute": "guest-exec", "arguments": arguments})
    try:
        libvirt_qemu.qemuAgentCommand(handle, question, AGENT_SECONDS, 0)
    except libvirt.libvirtError as error:
        log.info("a guest was not told that %s: %s", news, error)
        return bool(REFUSED.search(sentence(error))) and not _may_be_frozen(handle)
    return True


def _may_be_frozen(handle: libvirt.virDomain) -> bool:
    """Say whether a guest's file systems may be at rest, for a snapshot of ours or another's."""
    return any(not each.note.made for each in records(handle)) or Agent(handle).may_be_frozen()
