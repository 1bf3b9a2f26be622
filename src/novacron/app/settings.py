"""What the operator is told by flags and environment variables."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

__all__ = ["Settings"]


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of an operator process; the defaults suit a pod in a cluster."""

    leader_elect: bool = True
    metrics_bind_addr: str = ":8080"
    health_probe_bind_addr: str = ":8081"
    webhook_bind_addr: str = ":9443"
    webhook_url: str | None = None
    families: tuple[str, ...] = ("novacron",)
    workers: int = 16
    shards: int = 1
    log_level: str = "info"
    log_format: str = "json"
    kubeconfig: Path | None = None
    context: str | None = None
    watch_namespaces: tuple[str, ...] = ()
    reconcile_interval: timedelta = timedelta(seconds=30)
    namespace: str = "novacron-system"
    simulation_file: Path = Path("/var/lib/novacron/simulation.db")
    images_directory: Path = Path("/usr/share/novacron/images")
    image_allow: tuple[str, ...] = ()
    image_deny: tuple[str, ...] = ()
    image_max_size: str = "64Gi"
    image_max_disk: str = "2Ti"
    image_catalogue: str = "novacron-images"
    image_s3_secret: str = "novacron-s3"  # noqa: S105 - its name
    image_claim_namespaces: tuple[str, ...] = ()
    image_shared_namespaces: tuple[str, ...] = ()
    image_file_namespaces: tuple[str, ...] = ()
    scratch_directory: Path | None = None
    shutdown_grace: timedelta = timedelta(seconds=60)
    host_failure_grace: timedelta = timedelta(seconds=60)
    stop_deadline: timedelta = timedelta(seconds=20)
