"""Images from buckets, and the example of all that is not in the catalogue."""

import hashlib
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

import versitygw
from e2e.libvirt.conftest import DEAF, LibvirtStage
from e2e.libvirt.test_images import OWN, Cluster, cluster_says, made_by_qemu  # noqa: F401 - a fixture
from e2e.libvirt.test_real_faults import refused
from guest_images import as_ova
from machines import condition
from novacron.localcluster.ports import free_port

Object = dict[str, Any]

pytestmark = pytest.mark.full
EXAMPLE = Path(__file__).parents[3] / "examples/41-images-elsewhere.yaml"


def allow_buckets(real: LibvirtStage, cluster: Cluster, secret: Object) -> None:
    """Put a Secret where the operator looks for what it may read of S3."""
    body = {"metadata": {"name": f"s3-{real.scene.namespace}"}, "stringData": secret}
    cluster.create(f"/api/v1/namespaces/{OWN}/secrets", body)


def of_server(endpoint: str) -> Object:
    """Return what a Secret says of the tests' own server."""
    keys = {"accessKeyID": versitygw.ACCESS, "secretAccessKey": versitygw.SECRET}
    return {"endpoint": endpoint, **keys}


def test_an_image_in_a_bucket(
    real: LibvirtStage,
    cluster_says: Cluster,  # noqa: F811
    tmp_path: Path,
) -> None:
    """With what a Secret says, and a server that checks it."""
    (tmp_path / "buckets/golden").mkdir(parents=True)
    (tmp_path / "buckets/golden/disk.raw").write_bytes(DEAF + b"in a bucket")
    with versitygw.serving(tmp_path / "buckets", free_port()) as endpoint:
        allow_buckets(real, cluster_says, {**of_server(endpoint), "buckets": "golden"})
        real.create("other", "s3://silver/disk.raw")
        assert "these buckets only: golden" in refused(real, "other", "BucketDenied")
        real.create("bucket", "s3://golden/disk.raw")
        real.scene.until_running("bucket")
    assert versitygw.SECRET not in real.scene.operator.log


def test_the_example_runs_from_the_web_from_a_bucket_and_from_a_claim(
    real: LibvirtStage,
    cluster_says: Cluster,  # noqa: F811
    tmp_path: Path,
) -> None:
    """As it is printed, but for servers, keys, namespace and the sum of what is served."""
    # Three machines are more than the CPUs of some machines that run tests.
    real.scene.api.patch_host(real.host, {"spec": {"overcommit": {"cpu": 4, "memory": 4}}})
    secret, web, bucket, claim = yaml.safe_load_all(EXAMPLE.read_text())
    content = made_by_qemu(tmp_path, "qcow2")
    url = real.images.add("web.qcow2", content)
    image_of(web).update(source=url)
    (tmp_path / "buckets/images").mkdir(parents=True)
    (tmp_path / "buckets/images/linux.vmdk").write_bytes(made_by_qemu(tmp_path, "vmdk"))
    golden = cluster_says.claim("golden", {"hostPath": {"path": str(tmp_path / "golden")}})
    (tmp_path / "golden").mkdir()
    shutil.copy(as_ova(tmp_path, tmp_path / "disk.vmdk"), tmp_path / "golden/linux.ova")
    image_of(claim).update(source=f"{golden}/linux.ova")
    with versitygw.serving(tmp_path / "buckets", free_port()) as endpoint:
        allow_buckets(real, cluster_says, secret["stringData"] | of_server(endpoint))
        for body in (web, bucket, claim):
            body["metadata"]["namespace"] = real.scene.namespace
            body["spec"]["template"]["spec"]["nodeSelector"] = {"test/host": real.host}
            real.scene.api.create(body)
        told = real.scene.until(
            "from-the-web", lambda obj: condition(obj, "Created").get("status") == "False"
        )
        assert condition(told, "Created")["reason"] == "ChecksumMismatch"
        checksum = f"sha256:{hashlib.sha256(content).hexdigest()}"
        real.patch("from-the-web", {"template": {"spec": {"image": {"checksum": checksum}}}})
        for name in ("from-the-web", "from-s3", "from-a-claim"):
            real.scene.until_running(name)


def image_of(machine: Object) -> Object:
    """Return what a machine says of its image."""
    found: Object = machine["spec"]["template"]["spec"]["image"]
    return found
