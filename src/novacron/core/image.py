"""What is said of an image beside its address: when a host asks for it again."""

from enum import StrEnum

__all__ = ["PullPolicy"]


class PullPolicy(StrEnum):
    """When the source of an image is asked, though the host may have it already.

    ``ALWAYS`` asks for every new machine whether the image is still the same, and fetches it only
    if it is not. ``IF_NOT_PRESENT`` takes what the host has from this source. ``NEVER`` takes
    only that.
    """

    ALWAYS = "Always"
    IF_NOT_PRESENT = "IfNotPresent"
    NEVER = "Never"
