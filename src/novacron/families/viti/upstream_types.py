"""Fields of upstream's Machine that change nothing here: taken so that its manifests apply.

Which of them a Machine has is told to its owner; see ``without_effect``.
"""

from typing import Annotated

from pydantic import Field

from novacron.crd import Model
from novacron.families.shared_types import Text

__all__ = ["Backup", "ProviderConfig"]


class CredentialsRef(Model):
    """Where upstream keeps credentials."""

    secret_name: Text | None = None
    """Has no effect."""
    namespace: Text | None = None
    """Has no effect."""


class ProviderConfig(Model):
    """Where upstream's machine is made."""

    name: Text | None = None
    """Has no effect."""
    region: Text | None = None
    """Has no effect."""
    zone: Text | None = None
    """Has no effect."""
    config: Annotated[dict[str, str], Field(max_length=64)] = {}
    """Has no effect."""
    credentials_ref: CredentialsRef | None = None
    """Has no effect."""


class Backup(Model):
    """How upstream's machine is backed up."""

    enabled: bool | None = None
    """Has no effect: use snapshotPolicy."""
    schedule: Text | None = None
    """Has no effect: use snapshotPolicy.schedule."""
    retention_days: int | None = None
    """Has no effect: use snapshotPolicy.retention."""
