"""libvirt's failures in the core's words; the only place that knows both."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import libvirt

from novacron.core.errors import (
    Busy,
    DriverError,
    OutOfCapacity,
    Rejected,
    Unreachable,
    Unsupported,
)

__all__ = ["NOT_THERE", "code_of", "core_errors", "passes", "sentence", "translated"]

HYPERVISOR_AGAIN = timedelta(seconds=10)
NOT_THERE = frozenset(
    {
        libvirt.VIR_ERR_NO_DOMAIN,
        libvirt.VIR_ERR_NO_STORAGE_VOL,
        libvirt.VIR_ERR_NO_STORAGE_POOL,
        libvirt.VIR_ERR_NO_NETWORK,
    }
)
CONNECTION = frozenset(
    {
        libvirt.VIR_ERR_RPC,
        libvirt.VIR_ERR_NO_CONNECT,
        libvirt.VIR_ERR_INVALID_CONN,
        libvirt.VIR_ERR_GNUTLS_ERROR,
        libvirt.VIR_ERR_AUTH_FAILED,
        libvirt.VIR_ERR_AUTH_CANCELLED,
        libvirt.VIR_ERR_AUTH_UNAVAILABLE,
        libvirt.VIR_ERR_LIBSSH,
        libvirt.VIR_ERR_SSH,
    }
)
REFUSED = frozenset(
    {
        libvirt.VIR_ERR_XML_ERROR,
        libvirt.VIR_ERR_XML_INVALID_SCHEMA,
        libvirt.VIR_ERR_CONFIG_UNSUPPORTED,
        libvirt.VIR_ERR_INVALID_ARG,
    }
)
CANNOT = frozenset({libvirt.VIR_ERR_NO_SUPPORT, libvirt.VIR_ERR_OPERATION_UNSUPPORTED})
AT_WORK = frozenset({libvirt.VIR_ERR_OPERATION_INVALID, libvirt.VIR_ERR_OPERATION_TIMEOUT})
# Transport failures come under these too; the domain tells them from those of the daemon.
VAGUE = frozenset({libvirt.VIR_ERR_SYSTEM_ERROR, libvirt.VIR_ERR_INTERNAL_ERROR})
FROM_TRANSPORT = frozenset(
    {libvirt.VIR_FROM_RPC, libvirt.VIR_FROM_REMOTE, libvirt.VIR_FROM_STREAMS}
)
NO_ROOM = re.compile(
    r"no space left|cannot allocate memory|disk quota|not enough (space|memory)", re.I
)


def code_of(error: libvirt.libvirtError) -> int:
    """Return which error it is."""
    code: int | None = error.get_error_code()
    return -1 if code is None else code


def translated(error: libvirt.libvirtError, host: str) -> DriverError:
    """Return the core's failure for one of libvirt's."""
    code, said = code_of(error), sentence(error)
    if NO_ROOM.search(said):
        return OutOfCapacity(f"host {host} has no room: {said}")
    if code in CONNECTION or (code in VAGUE and error.get_error_domain() in FROM_TRANSPORT):
        return Unreachable(f"host {host} does not answer: {said}")
    if code in NOT_THERE or code in AT_WORK:
        return Busy(f"host {host}: {said}")
    if code in REFUSED:
        return Rejected(f"host {host} refuses it: {said}")
    if code in CANNOT:
        return Unsupported(f"host {host} cannot do this: {said}")
    return Busy(f"host {host}: {said}", HYPERVISOR_AGAIN, reason="HypervisorError")


def passes(error: libvirt.libvirtError) -> bool:
    """Say whether the very same may go well later: its host has no room, no time, or is away."""
    if code_of(error) == libvirt.VIR_ERR_OPERATION_TIMEOUT:
        return True
    return isinstance(translated(error, ""), (OutOfCapacity, Unreachable))


@contextmanager
def core_errors(host: str) -> Iterator[None]:
    """Let nothing of libvirt's out of the driver."""
    try:
        yield
    except libvirt.libvirtError as error:
        raise translated(error, host) from error


def sentence(error: libvirt.libvirtError) -> str:
    """Return what libvirt says, on one line of reasonable length."""
    text = error.get_error_message() or str(error)
    return " ".join(text.split())[:600]
