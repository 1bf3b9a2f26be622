"""Has libvirt's events delivered: news of domains, signs of life, and what consoles say.

One thread does so for the whole process. Every call on any connection ends its wait, though it
brings no news, so it rests in between: longer while nobody listens to a guest.
"""

import logging
import threading
import time

import libvirt

__all__ = ["attend", "deliver_events", "turn_away"]

log = logging.getLogger(__name__)

REST_SECONDS = 0.25
# What somebody types comes back at once, as far as he can tell.
ATTENTIVE_SECONDS = 0.02

_lock = threading.Lock()
_delivering = False
_listeners = 0


def deliver_events() -> None:
    """Begin, unless that was done."""
    global _delivering  # noqa: PLW0603 - libvirt's event loop is one per process
    with _lock:
        if _delivering:
            return
        # Errors are told by exceptions; libvirt would print each to stderr as well.
        libvirt.registerErrorHandler(lambda *_: None, None)
        libvirt.virEventRegisterDefaultImpl()
        threading.Thread(target=_deliver, name="libvirt-events", daemon=True).start()
        _delivering = True


def attend() -> None:
    """Rest less from now on, because somebody listens to a guest."""
    _listen(1)


def turn_away() -> None:
    """Take back one ``attend``."""
    _listen(-1)


def _listen(more: int) -> None:
    global _listeners  # noqa: PLW0603 - as above
    with _lock:
        _listeners += more


def _deliver() -> None:
    while True:
        try:
            libvirt.virEventRunDefaultImpl()
            time.sleep(ATTENTIVE_SECONDS if _listeners else REST_SECONDS)
        except libvirt.libvirtError as error:
            # Without this thread no silent daemon would ever be noticed again.
            log.warning("libvirt's events: %s", error)
            time.sleep(1)
