"""Fixtures for tests that put objects on a real API server by hand."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from declared import Object, install
from novacron.app.generate import CRDS, OTHER_CRDS
from novacron.families.novacron.kinds import RESOURCES
from novacron.families.viti.kinds import RESOURCES as VITI
from novacron.localcluster.controlplane import ControlPlane

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def plane(control_plane: ControlPlane) -> ControlPlane:
    """The shared API server with the committed definitions on it."""
    for directory, kinds in ((CRDS, RESOURCES), (OTHER_CRDS, VITI)):
        for name in (versions[0].__kind__.full_name for versions in kinds):
            file = ROOT / directory / f"{name}.yaml"
            install(control_plane, file.read_text(encoding="utf-8"), name)
    return control_plane


@pytest.fixture
def create(plane: ControlPlane, namespace: str) -> Callable[..., Object]:
    """Create an object, strictly checked, and return it as the server has it."""

    return partial(_created, plane, "-n", namespace)


@pytest.fixture
def check(plane: ControlPlane) -> Callable[[Object], Object]:
    """Have an object checked, strictly, as if it were created; nothing is kept."""
    return partial(_created, plane, "--dry-run=server")


def _created(plane: ControlPlane, *arguments: Any) -> Object:
    *options, written = arguments
    strictly = ("create", "--validate=strict", "-o", "json", *options, "-f", "-")
    made: Object = json.loads(plane.kubectl(*strictly, input=json.dumps(written)))
    return made
