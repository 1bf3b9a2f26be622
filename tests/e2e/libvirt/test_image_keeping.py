"""Which images are kept on a host, and which are brought: as a user and an administrator say."""

import os

from e2e.libvirt.conftest import DEAF, MIB, LibvirtStage
from e2e.libvirt.test_real_faults import refused
from operators import eventually


def kept_images(real: LibvirtStage) -> set[str]:
    """Return the names of all images on the host, and of their marks."""
    pool = real.outside.storagePoolLookupByName("novacron")
    return {name for name in pool.listVolumes() if name.startswith("image-") and ".raw" in name}


def seem_old(real: LibvirtStage, names: set[str]) -> None:
    """Have images seem to be used long ago; nobody removes one that was found a moment ago."""
    for name in names:
        (file,) = real.daemon.directory.rglob(name)
        os.utime(file, (0, 0))


def test_an_image_that_is_never_brought_must_be_there(real: LibvirtStage) -> None:
    """Nobody is asked for it, and the machine runs once somebody else has brought it."""
    file = f"present-{real.host}.raw"
    url = real.images.add(file, DEAF + b"present")
    real.create("frugal", url, pullPolicy="Never")
    assert "its pullPolicy is Never" in refused(real, "frugal", "ImageNotPresent")
    assert f"/{file}" not in real.images.asked
    real.create("bringer", url)
    real.scene.until_running("bringer")
    # It would be looked for by itself in a while.
    real.patch("frugal", {"template": {"spec": {"resources": {"disk": "300Mi"}}}})
    real.scene.until_running("frugal")
    assert real.images.asked.count(f"/{file}") == 1


def test_an_image_that_is_always_asked_for_is_brought_when_it_changed(real: LibvirtStage) -> None:
    """And one that is brought once only is what it was."""
    file = f"changing-{real.host}.raw"
    url = real.images.add(file, DEAF + b"old")
    real.create("first", url)
    real.scene.until_running("first")
    before = kept_images(real)
    real.images.add(file, DEAF + b"new")
    real.create("second", url)
    real.scene.until_running("second")
    assert kept_images(real) == before
    real.scene.api.delete_machine(real.scene.namespace, "first")  # the host has two CPUs
    real.create("third", url, pullPolicy="Always")
    real.scene.until_running("third")
    assert kept_images(real) > before


def test_images_take_no_more_room_than_their_host_gives_them(real: LibvirtStage) -> None:
    """Those that no disk is on top of go first, and none that one is."""
    real.scene.api.patch_host(real.host, {"spec": {"libvirt": {"imageCache": "5Mi"}}})
    brought: dict[str, set[str]] = {}
    for name in ("old", "used", "new"):
        before = kept_images(real)
        url = real.images.add(f"{name}-{real.host}.raw", DEAF + os.urandom(2 * MIB))
        real.create(name, url)
        real.scene.until_running(name)
        brought[name] = kept_images(real) - before
        seem_old(real, brought[name])
        if name == "old":
            real.scene.api.delete_machine(real.scene.namespace, name)
            real.scene.until_gone(name)
    assert all(brought.values())
    eventually(
        lambda: not brought["old"] & kept_images(real), lambda: f"old is gone: {kept_images(real)}"
    )
    assert brought["used"] | brought["new"] <= kept_images(real)
