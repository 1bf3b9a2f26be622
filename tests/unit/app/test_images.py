"""Where images are found, and who may have which."""

from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from novacron.app.images import ImageFinder
from novacron.app.settings import Settings
from novacron.core.errors import Rejected
from novacron.core.machine import MachinePlan, MachineRef, Resources
from novacron.images import FileBytes, HostFile, Located, WebBytes
from novacron.runtime.client import Client
from novacron.runtime.resource import Object

# None of these asks the cluster.
NO_CLUSTER = cast("Client", None)
KNOWN, OTHER = (f"sha256:{digit * 64}" for digit in "12")


async def found(
    source: str,
    settings: Settings,
    namespace: str = "team",
    checksum: str | None = "sha256:1",
    cluster: Client = NO_CLUSTER,
) -> Located:
    ref = MachineRef("uid", namespace, "vm", "host")
    plan = MachinePlan(ref, Resources(1, 512, 1024), source, checksum=checksum)
    return await ImageFinder(settings, cluster)(plan)


async def test_a_file_of_the_host_is_for_the_named_namespaces_only() -> None:
    """It could be anybody's disk."""
    settings = Settings(image_file_namespaces=("admins",))
    with pytest.raises(Rejected, match="--image-file-namespaces") as refusal:
        await found("file:///srv/disk.raw", settings)
    assert refusal.value.reason == "SourceDenied"
    located = await found("file:///srv/disk.raw", settings, "admins")
    assert located.place == HostFile("/srv", "disk.raw", "file:///srv/disk.raw")
    for sly in ("file:///srv/../etc/shadow", "file:///srv/"):
        with pytest.raises(Rejected, match="no plain path"):
            await found(sly, settings, "admins")


@pytest.mark.parametrize(
    ("source", "settings", "words"),
    [
        ("pvc://team/images", Settings(), "--image-claim-namespaces"),
        ("pvc://other/images", Settings(image_claim_namespaces=("*",)), "--image-shared-name"),
        ("pvc://team/images/../x", Settings(image_claim_namespaces=("team",)), "no plain path"),
    ],
)
async def test_claims_are_closed_until_somebody_opens_them(
    source: str, settings: Settings, words: str
) -> None:
    """A link in a volume can point to any file of the host."""
    with pytest.raises(Rejected, match=words):
        await found(source, settings)


async def test_built_in_images_are_files_of_one_directory(tmp_path: Path) -> None:
    """By name, and by nothing that leads elsewhere."""
    (tmp_path / "images").mkdir()
    for path in ("images/tiny.qcow2", "other.qcow2"):
        (tmp_path / path).write_bytes(b"")
    settings = Settings(images_directory=tmp_path / "images")
    located = await found("builtin://tiny", settings)
    assert located.place == FileBytes(tmp_path / "images/tiny.qcow2", "builtin://tiny")
    for unknown in ("builtin://huge", "builtin://../other"):
        with pytest.raises(Rejected, match="no built-in image is called"):
            await found(unknown, settings)


async def test_what_a_tenant_names_is_not_trusted() -> None:
    """And the checksum goes with it."""
    settings = Settings(image_allow=("10.0.0.0/8",), image_deny=("10.9.0.0/16",))
    located = await found("https://images.example/disk", settings)
    assert located.checksum == "sha256:1"
    place = cast("WebBytes", located.place)
    assert not place.trusted
    assert (place.reach.allow, place.reach.deny) == (settings.image_allow, settings.image_deny)
    assert replace(place, trusted=True) != place


class Cluster:
    """A cluster in which an administrator named one image."""

    async def get(self, *_: object) -> Object:
        return {"data": {"ours": f"ours:\n  url: https://images.example/x\n  checksum: {KNOWN}\n"}}


@pytest.mark.parametrize(
    ("asked", "checksum", "vouched"),
    [(None, KNOWN, True), (KNOWN, KNOWN, True), (OTHER, OTHER, False)],
)
async def test_nobody_vouches_for_a_checksum_but_who_named_the_source(
    asked: str | None, checksum: str, vouched: bool
) -> None:
    """What anybody asks for instead of the catalogue's is no image of the catalogue."""
    cluster = cast("Client", Cluster())
    located = await found("marketplace://ours", Settings(), checksum=asked, cluster=cluster)
    assert (located.checksum, located.vouched) == (checksum, vouched)
    own = await found("https://images.example/x", Settings(), checksum=asked)
    assert not own.vouched
