"""The system packages that a build of Kubernetes needs.

The list is short on purpose: only what a build really needs and a bare system may lack.
"""

import importlib.util
import os
from pathlib import Path

from novacron.localcluster.golang import machine_go
from novacron.workplace.packages import Package, lacking

__all__ = ["missing_for_build"]

AUTHORITIES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)


def _have_authorities() -> bool:
    given = os.environ.get("SSL_CERT_FILE")
    return any(Path(place).exists() for place in (*AUTHORITIES, *([given] if given else [])))


def _can_make_environments() -> bool:
    return machine_go() is not None or importlib.util.find_spec("ensurepip") is not None


FOR_BUILD = (
    Package("ca-certificates", "Go checks who it downloads from", _have_authorities),
    Package("python3-venv", "Go comes from PyPI when the machine has none", _can_make_environments),
)


def missing_for_build() -> list[Package]:
    """Return the packages without which Kubernetes cannot be built here."""
    return lacking(FOR_BUILD)
