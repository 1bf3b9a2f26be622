"""Images of Machines in another cluster, whose Secrets are not there by themselves."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api import Api
from e2e.kubevirt.far import FarStage, far_staged
from e2e.kubevirt.machines import condition
from kubevirt_bed import HOLD, KubeVirtBed
from novacron.localcluster.controlplane import ControlPlane

pytestmark = pytest.mark.full

IMAGE = {"source": "https://images.example.com/debian.qcow2", "credentialsSecret": "registry"}
COPY = "away-image-credentials"


@pytest.fixture
def stage(
    cluster: ControlPlane, api: Api, importing: KubeVirtBed, tmp_path: Path
) -> Iterator[FarStage]:
    """A namespace that both clusters have, with an operator at home."""
    with far_staged(cluster, api, importing, tmp_path) as there:
        yield there.in_reach()


def copied(stage: FarStage) -> dict[str, str]:
    """Return what the far cluster has of the credentials."""
    found: dict[str, Any] = stage.far.get("secrets", COPY) or {}
    data: dict[str, str] = found.get("data") or {}
    return {name: base64.b64decode(value).decode() for name, value in data.items()}


def test_the_credentials_of_an_image_go_along_and_are_removed_again(stage: FarStage) -> None:
    stage.place("away", image=IMAGE)
    obj = stage.until_told("away", "Ready", "False", "CredentialsNotFound")
    assert "with accessKeyId and secretKey" in condition(obj, "Ready")["message"]
    stage.keep("registry", accessKeyId="me", secretKey="hunter2")
    stage.until_running("away")
    assert copied(stage) == {"accessKeyId": "me", "secretKey": "hunter2"}
    volume = stage.far.get("datavolumes", "away-root")
    assert volume is not None
    assert volume["spec"]["source"]["http"]["secretRef"] == COPY
    assert "ownerReferences" not in stage.far.get("secrets", COPY)["metadata"]
    said = stage.operator.log + str(stage.machine("away"))
    assert "hunter2" not in said
    stage.bed.delete("machines", "away")
    stage.until_gone("away")
    assert stage.far.get("secrets", COPY) is None
    assert stage.bed.get("secrets", "registry") is not None


def test_credentials_that_were_wrong_are_replaced_while_the_import_goes_on(
    stage: FarStage,
) -> None:
    stage.keep("registry", accessKeyId="me", secretKey="wrong")
    # Its volume does not come, so the import cannot be over before the credentials are right.
    stage.far.annotate("storageclasses", "standard", HOLD, "true", "")
    stage.place("away", image=IMAGE)
    stage.far.wait("no copy", lambda: copied(stage).get("secretKey") == "wrong")
    stage.keep("registry", accessKeyId="me", secretKey="right")
    stage.far.wait("it is not replaced", lambda: copied(stage).get("secretKey") == "right")
    stage.far.annotate("storageclasses", "standard", HOLD, None, "")
    stage.until_running("away")
