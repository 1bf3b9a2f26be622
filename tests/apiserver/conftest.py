"""Fixtures for tests that put objects on a real API server by hand."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from api import Api
from declared import Object, install
from novacron.app.generate import CRDS, OTHER_CRDS
from novacron.crd import KindInfo
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


@pytest.fixture(scope="session")
def api(plane: ControlPlane) -> Iterator[Api]:
    """A connection to the server; a hundred kubectls would take half a minute."""
    connected = Api(plane.kubeconfig)
    yield connected
    connected.close()


@pytest.fixture
def create(plane: ControlPlane, namespace: str) -> Callable[..., Object]:
    """Create an object, strictly checked, and return it as the server has it."""

    def created(written: Object) -> Object:
        strictly = ("create", "--validate=strict", "-o", "json", "-n", namespace, "-f", "-")
        made: Object = json.loads(plane.kubectl(*strictly, input=json.dumps(written)))
        return made

    return created


@pytest.fixture
def check(api: Api) -> Callable[..., Object]:
    """Have an object checked, strictly, as if it were created; nothing is kept.

    What is wrong with it is in the message of Refused. Kinds of a test's own are given beside it.
    """
    infos = {versions[0].__kind__.kind: versions[0].__kind__ for versions in (*RESOURCES, *VITI)}

    def checked(written: Object, own: KindInfo | None = None) -> Object:
        info = own or infos[written["kind"]]
        within = "/namespaces/default" if info.namespaced else ""
        path = f"/apis/{info.api_version}{within}/{info.plural}"
        return api.call("POST", f"{path}?dryRun=All&fieldValidation=Strict", written)

    return checked
