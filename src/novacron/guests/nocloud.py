"""The small disk that tells a guest who it is: NoCloud, as cloud-init and ``tiny`` read it.

A pure function without external programs. The same texts make the same bytes, so a disk that
is made again is the disk that was there.
"""

from novacron.guests.iso9660 import Volume, iso9660

__all__ = ["LABEL", "NoCloudTooLarge", "nocloud_image"]

LABEL = "cidata"
KIB = 1024
# What an API server stores in one object is little more than this.
LIMITS = {"meta-data": 64 * KIB, "network-config": 64 * KIB, "user-data": 1024 * KIB}


class NoCloudTooLarge(ValueError):
    """A text is larger than any guest should have to read at boot."""


def nocloud_image(
    meta_data: str, user_data: str | bytes = "", network_config: str | None = None
) -> Volume:
    """Return a disk labelled ``cidata``: an ISO 9660 volume with Joliet names.

    Attach it read-only as a virtio disk; kernels for clouds often cannot see an IDE or SATA
    CD-ROM. Without a network-config the guest decides itself, which usually means DHCP.
    """
    texts = {"meta-data": meta_data, "user-data": user_data}
    if network_config is not None:
        texts["network-config"] = network_config
    files = {name: text.encode() if isinstance(text, str) else text for name, text in texts.items()}
    for name, content in files.items():
        _check(name, len(content))
    return iso9660(LABEL, files)


def _check(name: str, size: int) -> None:
    limit = LIMITS[name]
    if size > limit:
        raise NoCloudTooLarge(
            f"{name} is {size} bytes, more than the {limit // KIB} KiB a guest is given; "
            f"shorten it, or let it fetch the rest"
        )
