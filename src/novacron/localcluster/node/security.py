"""Whom a container runs as: the security contexts of pod and container, made one. Pure."""

from novacron.localcluster.node.environment import Unmet
from novacron.localcluster.node.image import IMAGE_USER
from novacron.localcluster.node.order import User
from novacron.runtime.resource import Object

__all__ = ["has_read_only_root", "user_of"]

CAPABILITIES = (
    "CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID",
    "SETPCAP", "LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW",
    "IPC_LOCK", "IPC_OWNER", "SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT",
    "SYS_ADMIN", "SYS_BOOT", "SYS_NICE", "SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD",
    "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP", "MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG",
    "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF", "CHECKPOINT_RESTORE",
)  # fmt: skip
# What container runtimes leave to root, but for making devices: nothing here limits those.
DEFAULT = frozenset({
    "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP",
    "NET_BIND_SERVICE", "NET_RAW", "SYS_CHROOT", "AUDIT_WRITE", "SETFCAP",
})  # fmt: skip


def user_of(pod: Object, container: Object) -> User:
    """Return who the container runs as; Unmet when that contradicts ``runAsNonRoot``."""
    whole = pod["spec"].get("securityContext") or {}
    own = container.get("securityContext") or {}
    both = {**whole, **own}
    uid = both.get("runAsUser", IMAGE_USER)
    if both.get("runAsNonRoot") and uid == 0:
        raise Unmet("runAsNonRoot is set, and runAsUser is 0, which is root")
    gid = both.get("runAsGroup", IMAGE_USER if uid == IMAGE_USER else 0)
    groups = {*(whole.get("supplementalGroups") or ())}
    if whole.get("fsGroup") is not None:
        groups.add(whole["fsGroup"])
    return User(
        uid=uid,
        gid=gid,
        groups=sorted(groups),
        capabilities=_capabilities(own.get("capabilities") or {}),
        new_privileges=own.get("allowPrivilegeEscalation", True),
    )


def has_read_only_root(container: Object) -> bool:
    """Say whether the container may write only into its volumes."""
    return bool((container.get("securityContext") or {}).get("readOnlyRootFilesystem"))


def _capabilities(wish: Object) -> list[int]:
    dropped, added = set(wish.get("drop") or ()), set(wish.get("add") or ())
    kept = frozenset() if "ALL" in dropped else DEFAULT - dropped
    named = kept | (frozenset(CAPABILITIES) if "ALL" in added else added)
    return sorted(CAPABILITIES.index(name) for name in named if name in CAPABILITIES)
