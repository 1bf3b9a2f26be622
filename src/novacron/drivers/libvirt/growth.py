"""Has a guest use what its disk grew by: partition and file system, through its agent.

A guest without an agent, and one whose disks are laid out in a way that is not understood here,
finds the larger disk and does with it what it likes.
"""

import json
import logging

import libvirt
import libvirt_qemu

__all__ = ["grow_file_systems"]

log = logging.getLogger(__name__)

AGENT_SECONDS = 5
# Of the disk with this serial number, or of the one with the root if none is given: the last
# partition grows into what is free behind it, and every mounted file system into its partition.
SCRIPT = r"""
serial=$1
of() { basename "$(readlink -f "$1")"; }
disk_of() {
    if [ -e "/sys/class/block/$1/partition" ]; then of "/sys/class/block/$1/.."; else echo "$1"; fi
}
mounted() {
    while read -r device where kind _; do
        case $device in
        /dev/*) [ -b "$device" ] && echo "$(of "$device") $where $kind" ;;
        esac
    done </proc/mounts
}
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
    xfs) xfs_growfs "$where" ;;
    btrfs) btrfs filesystem resize max "$where" ;;
    esac
done
"""


def grow_file_systems(handle: libvirt.virDomain, serial: str = "") -> None:
    """Start the growth inside a guest, of one disk or of the first; what comes of it is its own."""
    arguments = {"path": "/bin/sh", "arg": ["-c", SCRIPT, "grow", serial]}
    question = json.dumps({"execute": "guest-exec", "arguments": arguments})
    try:
        libvirt_qemu.qemuAgentCommand(handle, question, AGENT_SECONDS, 0)
    except libvirt.libvirtError as error:
        log.info("a guest was not told that its disk grew: %s", error)
