"""How the daemon is started: the command, in a view of the file system of its own for root.

Only command lines and the few files that such a view needs; nothing here starts anything.
"""

from pathlib import Path

from novacron.localcluster.errors import LocalClusterError
from novacron.localcluster.hypervisor.account import own_accounts
from novacron.localcluster.hypervisor.kvm import DEVICE, open_to_guests
from novacron.localcluster.hypervisor.membership import Membership
from novacron.localcluster.hypervisor.places import SEEN_SHARED, Places
from novacron.workplace.programs import SEARCH, find_program

__all__ = ["environment", "program", "root_command"]

# The view lasts as long as a process is in it: nothing has to be unmounted, ever.
ENTER = """\
set -e
[ -z "$1" ] || echo "$1" > /proc/sys/kernel/hostname
shift
while [ "$1" != -- ]; do
    [ -e "$2" ] || mkdir -p "$2"
    mount --bind "$1" "$2"
    shift 2
done
shift
exec "$@"
"""


def program(name: str) -> str:
    """Return where a program is."""
    found = find_program(name)
    if found is None:
        raise LocalClusterError(f"{name} is not installed; `novacron doctor` says how to get it")
    return found


def environment(places: Places, *, privileged: bool) -> dict[str, str]:
    """Return the variables the daemon is started with; it looks for its helpers by PATH too."""
    return {"PATH": SEARCH, **({} if privileged else places.variables())}


def root_command(
    places: Places, namespace: str | None, membership: Membership | None
) -> tuple[str, ...]:
    """Return the command that starts root's daemon, in a network of its own if one is named."""
    network = (program("ip"), "netns", "exec", namespace) if namespace else ()
    shared = {membership.shared: SEEN_SHARED} if membership else {}
    seen = places.view() | own_accounts(places.directory) | shared
    view = [str(path) for pair in seen.items() for path in pair]
    unshare = (program("unshare"), "--mount", "--uts", "--propagation", "private")
    # The usual place of the record would be shared with the machine's own daemon.
    record = ("--pid-file", "/run/libvirt/libvirtd.pid", *listening(membership))
    hostname = membership.hostname if membership else ""
    return (
        *(*network, *unshare, "sh", "-c", ENTER, "enter", hostname, *view, *_hidden(places)),
        *("--", program("libvirtd"), *record),
    )


def listening(membership: Membership | None) -> tuple[str, ...]:
    """Return what makes a daemon heed others than the users of its socket."""
    return ("--listen",) if membership else ()


def _hidden(places: Places) -> tuple[str, ...]:
    """Hide a device that guests may not use.

    libvirt looks at it with all rights and then finds that guests have none, so it asks every QEMU
    anew what it can do, seconds for each call.
    """
    if not DEVICE.exists() or open_to_guests():
        return ()
    return str(_closed(places.directory / "no-kvm")), str(DEVICE)


def _closed(path: Path) -> Path:
    path.touch()
    path.chmod(0)
    return path
