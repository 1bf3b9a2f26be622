"""What a guest is told about itself when it starts, in cloud-init's words."""

from dataclasses import dataclass

__all__ = ["Source", "Told"]


@dataclass(frozen=True, slots=True)
class Source:
    """An entry of a Secret or a ConfigMap beside the machine."""

    kind: str
    name: str
    key: str


@dataclass(frozen=True, slots=True)
class Told:
    """All that is said to a guest, and what is still to be fetched for it."""

    user_data: tuple[bytes, ...] = ()
    user_source: Source | None = None
    network_data: bytes | None = None
    network_source: Source | None = None
    config_drive: bool = False
