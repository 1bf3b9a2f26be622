"""The user that guests run as, who need not exist on the machine."""

from pathlib import Path

__all__ = ["GUEST_USER", "own_accounts"]

# The number that Debian keeps for QEMU's guests; nobody else's anywhere, whether it has a name here
# or not. A guest that breaks out of QEMU is then nobody in particular.
GUEST_USER = 64055
# Debian's libvirt does not start without this name, which only its system service brings along.
NAME = "libvirt-qemu"
ENTRIES = {
    Path("/etc/passwd"): f"{NAME}:x:{GUEST_USER}:{GUEST_USER}::/nonexistent:/usr/sbin/nologin\n",
    Path("/etc/group"): f"{NAME}:x:{GUEST_USER}:\n",
}


def own_accounts(directory: Path) -> dict[Path, Path]:
    """Return files for the daemon to see instead of the machine's, where those lack the name."""
    shown = {}
    for path, entry in ENTRIES.items():
        text = path.read_text()
        if not any(line.startswith(f"{NAME}:") for line in text.splitlines()):
            copy = directory / path.name
            copy.write_text(text.rstrip("\n") + "\n" + entry)
            copy.chmod(0o644)
            shown[copy] = path
    return shown
