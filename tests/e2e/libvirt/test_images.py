"""Images from everywhere, as a user asks for them and sees what becomes of them."""

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml

from api import Api
from e2e.conftest import Stage
from e2e.libvirt.conftest import DEAF, LibvirtStage
from e2e.libvirt.test_real_faults import refused
from e2e.libvirt.test_real_machine import said
from e2e.test_moves import novacron
from guest_images import as_ova, built_in
from image_server import ImageServer
from libvirt_daemon import own_daemon
from machines import condition
from novacron.drivers.libvirt.shelf import Shelf, key_of
from novacron.localcluster.controlplane import ControlPlane
from operators import RunningOperator, eventually

Object = dict[str, Any]

OWN = "novacron-system"
MIB = 1024 * 1024
EXAMPLE = Path(__file__).parents[3] / "examples/40-images.yaml"


@pytest.fixture
def cluster_says(real: LibvirtStage) -> "Iterator[Cluster]":
    """Write and remove what the operator reads of the cluster."""
    cluster = Cluster(real)
    yield cluster
    cluster.clear()


class Cluster:
    """What an administrator puts into the cluster."""

    def __init__(self, real: LibvirtStage) -> None:
        self.real = real
        self.api, self.namespace = real.scene.api, real.scene.namespace
        self.made: list[str] = []

    def create(self, path: str, body: Object) -> None:
        self.api.call("POST", path, body)
        self.made.append(f"{path}/{body['metadata']['name']}")

    def catalogue(self, **entries: Object) -> None:
        name = f"images-{self.namespace}"
        body = {"metadata": {"name": name}, "data": {"images.yaml": yaml.safe_dump(entries)}}
        self.create(f"/api/v1/namespaces/{OWN}/configmaps", body)

    def claim(self, name: str, source: Object, **spec: Any) -> str:
        """Make a claim that is bound to a volume, as a controller would bind it."""
        volume = f"{self.namespace}-{name}"
        shape = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
        size = {"storage": "1Gi"}
        self.create(
            "/api/v1/persistentvolumes",
            {"metadata": {"name": volume}, "spec": {**shape, "capacity": size, **source, **spec}},
        )
        claims = f"/api/v1/namespaces/{self.namespace}/persistentvolumeclaims"
        wanted = {**shape, **spec, "resources": {"requests": size}, "volumeName": volume}
        wanted.pop("nodeAffinity", None)
        self.create(claims, {"metadata": {"name": name}, "spec": wanted})
        bound = {"status": {"phase": "Bound"}}
        self.api.call("PATCH", f"{claims}/{name}/status", bound, merge=True)
        return f"pvc://{self.namespace}/{name}"

    def clear(self) -> None:
        for path in reversed(self.made):
            self.api.call("PATCH", path, {"metadata": {"finalizers": None}}, merge=True)
            self.api.call("DELETE", path)


def made_by_qemu(directory: Path, kind: str) -> bytes:
    disk, made = directory / "disk.raw", directory / f"disk.{kind}"
    disk.write_bytes(DEAF)
    subprocess.run(["qemu-img", "convert", "-O", kind, disk, made], check=True)
    return made.read_bytes()


def test_a_name_of_the_catalogue(real: LibvirtStage, cluster_says: Cluster) -> None:
    """Added by the cluster, found with the near names when it is wrong, and picked up later."""
    real.create("early", "marketplace://house-linux")
    sentence = refused(real, "early", "ImageNotFound")
    assert "no image in the catalogue is called house-linux" in sentence
    url = real.images.add("house.raw", DEAF + b"house")
    least = {"memory": "512Mi", "disk": "64Mi", "cpu": 1}
    cluster_says.catalogue(**{"house-linux": {"url": url, **least}})
    real.create("wrong", "marketplace://house-linx")
    assert "did you mean house-linux" in refused_now(real, "wrong", "ImageNotFound")
    # It would be looked for by itself in a while.
    real.patch("early", {"template": {"spec": {"resources": {"disk": "300Mi"}}}})
    real.scene.until_running("early")


def refused_now(real: LibvirtStage, name: str, reason: str) -> str:
    """Wait until a machine is refused for a reason, beside others that are not."""
    obj = real.scene.until(name, lambda obj: condition(obj, "Created").get("reason") == reason)
    sentence: str = condition(obj, "Created")["message"]
    return sentence


def test_a_machine_too_small_for_its_image(real: LibvirtStage, cluster_says: Cluster) -> None:
    """The catalogue knows."""
    url = real.images.add("large.raw", DEAF)
    cluster_says.catalogue(large={"url": url, "memory": "4Gi"})
    real.create("small", "marketplace://large")
    assert "needs memory of at least 4096Mi" in refused(real, "small", "TooSmallForImage")


def test_an_image_of_the_catalogue_is_what_its_file_of_checksums_says(
    real: LibvirtStage, cluster_says: Cluster
) -> None:
    """Other bytes are refused, and taken once the file lists them."""
    name, sums, content = f"summed-{real.host}.raw", f"SHA512SUMS-{real.host}", DEAF + b"summed"
    there, listed = (hashlib.sha512(each).hexdigest() for each in (content, DEAF))
    beside = real.images.add(sums, f"{listed}  {name}\n".encode())
    url = real.images.add(name, content)
    cluster_says.catalogue(summed={"url": url, "checksumFile": beside})
    real.create("summed", "marketplace://summed")
    assert f"has sha512:{there}, not" in refused(real, "summed", "ChecksumMismatch")
    real.images.add(sums, f"{listed}  other.raw\n{there} *{name}\n".encode())
    # It would be looked for by itself in a while.
    real.patch("summed", {"template": {"spec": {"resources": {"disk": "300Mi"}}}})
    real.scene.until_running("summed")
    shelf = Shelf(frozenset(real.outside.storagePoolLookupByName("novacron").listVolumes()))
    assert shelf.find(key_of(f"sha512:{there}")) is not None, "it is known by its checksum"


def test_the_example(real: LibvirtStage, cluster_says: Cluster) -> None:
    """As it is printed, but for the names of this operator and host."""
    extension, machine = yaml.safe_load_all(EXAMPLE.read_text())
    cluster_says.catalogue(**yaml.safe_load(extension["data"]["images.yaml"]))
    machine["metadata"]["namespace"] = real.scene.namespace
    machine["spec"]["template"]["spec"]["nodeSelector"] = {"test/host": real.host}
    real.scene.api.create(machine)
    real.scene.until_running("from-catalogue")


def test_the_list_of_images(real: LibvirtStage, cluster_says: Cluster) -> None:
    """Those that come with us and those of the cluster, for people and for programs."""
    cluster_says.catalogue(mine={"url": "https://images.example/mine.raw", "user": "me"})

    def listed(*more: str) -> str:
        command = [sys.executable, "-m", "novacron.app.entry", "image", "list"]
        flags = [
            f"--kubeconfig={real.scene.operator.plane.kubeconfig}",
            f"--catalogue=images-{real.scene.namespace}",
        ]
        done = subprocess.run([*command, *flags, *more], capture_output=True, text=True, check=True)
        return done.stdout

    lines = listed().splitlines()
    assert lines[0].split() == ["NAME", "USER", "CPU", "MEMORY", "DISK", "FROM", "DESCRIPTION"]
    assert any(line.startswith("ubuntu-22.04-lts   ubuntu ") for line in lines)
    for images in (json.loads(listed("-o", "json")), yaml.safe_load(listed("-o", "yaml"))):
        [mine] = [each for each in images["images"] if each["name"] == "mine"]
        assert mine["source"] == "marketplace://mine"
        assert mine["url"] == "https://images.example/mine.raw"


@pytest.mark.parametrize("kind", ["vmdk", pytest.param("vhdx", marks=pytest.mark.full)])
def test_a_disk_of_another_hypervisor_runs(real: LibvirtStage, tmp_path: Path, kind: str) -> None:
    """Converted on the way, told by its content and not by its name."""
    real.create("foreign", real.images.add(f"{kind}.img", made_by_qemu(tmp_path, kind)))
    obj = real.scene.until_running("foreign")
    assert real.domain(obj).isActive()


@pytest.mark.full
def test_a_guest_boots_from_what_another_hypervisor_exported(
    real: LibvirtStage, tmp_path: Path
) -> None:
    """From the disk in the archive, the way vSphere packs it."""
    tiny, disk = built_in("tiny"), tmp_path / "disk.vmdk"
    assert tiny is not None
    streamed = ("-O", "vmdk", "-o", "subformat=streamOptimized")
    subprocess.run(["qemu-img", "convert", *streamed, tiny, disk], check=True)
    url = real.images.add("exported.img", as_ova(tmp_path, disk).read_bytes())
    obj = real.create("exported", url, networks=[{"name": "default"}])
    uid = obj["metadata"]["uid"]
    real.scene.until("exported", lambda obj: "ipAddresses" in obj.get("status", {}))
    eventually(
        lambda: "novacron-tiny: ready hostname=exported" in said(real, uid),
        lambda: said(real, uid),
    )


def test_progress_is_seen_while_an_image_comes(real: LibvirtStage) -> None:
    """In the condition, and by every command that waits."""
    real.images.pause = 0.1
    try:
        real.create("slow", real.images.add("slow.raw", DEAF * 4 + b"slow"), disk="64Mi")
        seen = real.scene.until(
            "slow",
            lambda obj: (
                re.search(
                    r"image [1-9]\d* % of 5 MiB", condition(obj, "Created").get("message", "")
                )
                is not None
            ),
        )
        assert seen["status"]["phase"] == "Pending"
        waited = novacron(real.scene, "vm", "start", "slow", "--wait")
    finally:
        real.images.pause = 0.0
    assert re.search(r"slow: Pending: .*image [1-9]\d* % of 5 MiB", waited.stderr), waited.stderr
    real.scene.until_running("slow")


def test_two_machines_share_one_download(real: LibvirtStage) -> None:
    """Whoever comes second waits for the first."""
    url = real.images.add(f"common-{real.host}.raw", DEAF + b"in common")
    for name in ("first", "second"):
        real.create(name, url)
    for name in ("first", "second"):
        real.scene.until_running(name)
    assert real.images.asked.count(f"/common-{real.host}.raw") == 1


def test_an_image_of_a_claim(real: LibvirtStage, cluster_says: Cluster, tmp_path: Path) -> None:
    """A directory of the host that is a volume of the cluster."""
    (tmp_path / "disk.img").write_bytes(DEAF + b"claimed")
    source = cluster_says.claim("images", {"hostPath": {"path": str(tmp_path)}})
    real.create("claimed", source)
    real.scene.until_running("claimed")


def test_claims_that_cannot_be_read_say_why(real: LibvirtStage, cluster_says: Cluster) -> None:
    """By type, by namespace, by name, and by what is in it."""
    driver = {"csi": {"driver": "block.example", "volumeHandle": "1"}}
    cases = {
        cluster_says.claim("remote", driver): ("VolumeUnusable", r"csi \(block.example\)"),
        f"pvc://{real.scene.namespace}/none": ("ImageNotFound", "no PersistentVolumeClaim none"),
        "pvc://elsewhere/images": ("SourceDenied", "--image-shared-namespaces"),
        cluster_says.claim("empty", {"hostPath": {"path": "/nowhere"}}): (
            "ImageNotFound",
            "the host cannot read /nowhere",
        ),
    }
    for number, (source, (reason, words)) in enumerate(cases.items()):
        real.create(f"m{number}", source)
        assert re.search(words, refused(real, f"m{number}", reason))
        real.scene.api.delete_machine(real.scene.namespace, f"m{number}")
        real.scene.until_gone(f"m{number}")


def test_a_file_of_the_host_is_for_some_namespaces_only(real: LibvirtStage, tmp_path: Path) -> None:
    """It could be anybody's disk, so nobody reads it whose namespace is not named."""
    (tmp_path / "own.raw").write_bytes(DEAF + b"own")
    source = f"file://{tmp_path}/own.raw"
    others = replace(real.scene, namespace=real.scene.operator.namespaces[1])
    strangers = replace(real, scene=others)
    strangers.create("own", source)
    assert f"namespace {others.namespace}" in refused(strangers, "own", "SourceDenied")
    real.create("own", source)
    real.scene.until_running("own")
    assert condition(others.until("own", bool), "Created")["reason"] == "SourceDenied"
    others.api.delete_machine(others.namespace, "own")
    others.until_gone("own")


def test_where_machines_get_their_secrets_is_out_of_reach(real: LibvirtStage) -> None:
    """A tenant's machine must not be a way to the operator's own identity."""
    real.create("thief", "http://169.254.169.254/latest/meta-data/iam/disk.raw")
    assert "never fetched from" in refused(real, "thief", "AddressDenied")


@pytest.mark.full
def test_a_killed_operator_leaves_no_half_of_an_image(
    cluster: ControlPlane, api: Api, images: ImageServer, tmp_path: Path
) -> None:
    """Neither when the next one wants it too, nor when nobody does any more."""
    namespace = f"killed-{uuid4().hex[:8]}"
    api.create_namespace(namespace)
    operator = RunningOperator(cluster, tmp_path, [namespace]).start()
    images.pause, images.ranges = 0.1, True
    try:
        with own_daemon() as daemon:
            scene = Stage(api, operator, namespace, [])
            host = scene.add_host(driver="libvirt", endpoint=daemon.uri, simulation=None)
            stage = LibvirtStage(scene, host, daemon, images)
            stage.create("kept", images.add("kept.raw", DEAF * 2 + b"kept"), disk="64Mi")
            stage.create("lost", images.add("lost.raw", DEAF * 2 + b"lost"), disk="64Mi")
            eventually(lambda: len(parts(stage)) == 2, lambda: str(parts(stage)))
            operator.kill()
            api.delete_machine(namespace, "lost")
            images.pause = 0.0
            operator.start()
            scene.until_running("kept")
            eventually(lambda: not parts(stage), lambda: str(parts(stage)))
            scene.clear()
            stage.outside.close()
    finally:
        images.pause, images.ranges = 0.0, False
        operator.stop()


def parts(stage: LibvirtStage) -> set[str]:
    """Return what begins like an image and is not complete."""
    pools = [pool for pool in stage.outside.listAllStoragePools() if pool.name() == "novacron"]
    return set(Shelf(frozenset(pools[0].listVolumes())).unfinished()) if pools else set()
