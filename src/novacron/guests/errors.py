"""Failures of making guest images, each one sentence that a user can act upon."""

from novacron.workplace.errors import WorkplaceError

__all__ = ["ImageFailed"]


class ImageFailed(WorkplaceError):
    """A guest image could not be made; the message says what to do."""
