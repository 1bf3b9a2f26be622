"""MAC addresses that stay: made from what never changes, so that nothing has to be written down."""

from collections.abc import Collection
from hashlib import sha256

__all__ = ["stable_mac"]

# Not from a manufacturer, and of one interface: the two low bits of the first octet.
LOCAL, GROUP = 0x02, 0x01


def stable_mac(uid: str, interface: str, taken: Collection[str] = ()) -> str:
    """Return the address of an interface of a machine: the same one whenever it is asked for.

    ``taken`` are addresses that the machine has given to other interfaces.
    """
    avoided = {each.lower() for each in taken}
    attempt = 0
    while True:
        text = f"{uid}/{interface}" + (f"/{attempt}" if attempt else "")
        first, *rest = sha256(text.encode()).digest()[:6]
        octets = ((first | LOCAL) & ~GROUP & 0xFF, *rest)
        mac = ":".join(f"{octet:02x}" for octet in octets)
        if mac not in avoided:
            return mac
        attempt += 1
