"""Failures that a user can act upon, each one sentence."""

__all__ = ["AtWork", "WorkplaceError"]


class WorkplaceError(Exception):
    """Something this machine should have is missing or broken; the message says what to do."""


class AtWork(WorkplaceError):
    """Another novacron command is at work in the same directory."""
