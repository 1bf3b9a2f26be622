"""How a machine's move to another host goes, as its status tells it."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from novacron.core.move import MoveResult
from novacron.crd import Model

__all__ = ["MigrationStatus"]


class MigrationStatus(Model):
    """The move that is under way, or the last one."""

    id: str | None = None
    """Which move it is; another one has another id."""
    source_node: str | None = None
    """The host it leaves."""
    target_node: str | None = None
    """The host it moves to."""
    start_time: datetime | None = None
    """When the move began."""
    end_time: datetime | None = None
    """When it was over."""
    progress: Annotated[int, Field(ge=0, le=100)] | None = None
    """How much is done, in percent."""
    transferred_bytes: Annotated[int, Field(ge=0)] | None = None
    """How much was sent so far, or in all."""
    downtime_milliseconds: Annotated[int, Field(ge=0)] | None = None
    """For how long the guest stood still in the end."""
    result: MoveResult | None = None
    """How it ended; without it, it is under way."""
    reason: str | None = None
    """Why it ended so, in one word that can be searched for."""
    message: str | None = None
    """Why it ended so, in a sentence."""
