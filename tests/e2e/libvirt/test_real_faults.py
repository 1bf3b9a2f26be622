"""What goes wrong with images, hosts and names: one sentence, a reason, and nothing left behind."""

import os
import signal
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from api import Api, Refused
from e2e.conftest import Stage
from e2e.libvirt.conftest import DEAF, LibvirtStage
from image_server import ImageServer
from libvirt_daemon import LibvirtDaemon
from machines import condition
from novacron.images.inspect import HEADER
from operators import RunningOperator, eventually


def qcow2(directory: Path, *options: str) -> bytes:
    """Return a small qcow2 image made by qemu-img."""
    path = directory / "made.qcow2"
    command = ["qemu-img", "create", "-q", "-f", "qcow2", *options, str(path), "1M"]
    subprocess.run(command, check=True, cwd=directory)
    return path.read_bytes()


def refused(real: LibvirtStage, name: str, reason: str) -> str:
    """Wait until a machine is refused for a reason; return the sentence. Nothing may be left."""
    obj = real.scene.until(name, lambda obj: condition(obj, "Created").get("reason") == reason)
    assert condition(obj, "Ready")["reason"] == reason
    assert obj["status"]["phase"] in ("Failed", "Pending")
    eventually(lambda: real.left_behind() == (set(), set()), lambda: str(real.left_behind()))
    sentence: str = condition(obj, "Created")["message"]
    return sentence


def test_an_image_that_does_not_exist(real: LibvirtStage) -> None:
    """And one that appears later is found."""
    late = f"late-for-{real.host}.raw"
    real.create("early", f"{real.images.url}/{late}")
    assert "404" in refused(real, "early", "ImageNotFound")
    real.images.add(late, DEAF)
    real.patch("early", {"running": False})
    real.scene.until("early", lambda obj: obj["status"]["phase"] == "Stopped")


def test_a_built_in_image_that_we_do_not_have(real: LibvirtStage) -> None:
    """Names are checked, not guessed."""
    real.create("unknown", "builtin://huge")
    assert "no built-in image is called huge" in refused(real, "unknown", "ImageNotFound")


def test_what_is_no_image(real: LibvirtStage) -> None:
    """A web page, most often."""
    real.create("page", real.images.add("page.html", b"<html>" + b" " * 4096))
    assert "is no disk image" in refused(real, "page", "NotAnImage")


def test_a_compressed_image_says_what_it_is(real: LibvirtStage) -> None:
    """The commonest mistake has a sentence of its own."""
    real.create("packed", real.images.add("disk.gz", b"\x1f\x8b" + b"\0" * 4096))
    assert "compressed with gzip" in refused(real, "packed", "NotAnImage")


def test_an_image_with_another_checksum(real: LibvirtStage) -> None:
    """Nobody's bytes but those that were asked for ever become a disk."""
    content = DEAF + b"of a length that no other image has"  # they stay when their test has ended
    url = real.images.add("forged.raw", content)
    real.create("forged", url, checksum="sha256:" + "0" * 64)
    assert "not the checksum" in refused(real, "forged", "ChecksumMismatch")
    pool = real.outside.storagePoolLookupByName("novacron")
    pool.refresh()
    sizes = [pool.storageVolLookupByName(name).info()[1] for name in pool.listVolumes()]
    assert len(content) not in sizes, "the forged bytes stay nowhere"


def test_an_image_that_stops_half_way_is_fetched_again(real: LibvirtStage) -> None:
    """A broken connection heals by itself."""
    url = real.images.add("torn.raw", DEAF + b"torn", torn=True)
    real.create("torn", url)
    assert "stopped" in refused(real, "torn", "ImageIncomplete")
    real.images.torn.clear()
    real.scene.until_running("torn")


@pytest.mark.parametrize("kind", ["backing", "data"])
def test_a_qcow2_that_refers_to_another_file(real: LibvirtStage, tmp_path: Path, kind: str) -> None:
    """It could name any file of the host, and its guest would read it."""
    options = {
        "backing": ("-b", "/etc/shadow", "-F", "raw", "-u"),
        "data": ("-o", "data_file=data.raw,data_file_raw=on"),
    }[kind]
    real.create("thief", real.images.add(f"{kind}.qcow2", qcow2(tmp_path, *options)))
    assert "flatten it first" in refused(real, "thief", "ImageNotAlone")


def test_an_image_larger_than_the_disk(real: LibvirtStage, tmp_path: Path) -> None:
    """Cut off, it would boot or not, by luck."""
    large = bytearray(qcow2(tmp_path))
    struct.pack_into(">Q", large, HEADER.size - 8, 2**40)
    real.create("cramped", real.images.add("large.qcow2", bytes(large)))
    assert "needs a disk of 1048576Mi" in refused(real, "cramped", "DiskTooSmall")


def test_user_data_over_the_limit_is_refused_at_once(real: LibvirtStage) -> None:
    """By the schema, before anything is stored."""
    with pytest.raises(Refused, match="userData"):
        real.create("wordy", userData="#" * 65537)


def test_more_memory_than_the_host_has(real: LibvirtStage) -> None:
    """Overcommit may promise it; no single guest can have it."""
    real.scene.api.patch_host(real.host, {"spec": {"overcommit": {"memory": 90}}})
    real.scene.until_host(
        real.host, lambda obj: obj["status"]["allocatable"] != obj["status"]["capacity"]
    )
    real.create("giant", memory="1Ti")
    obj = real.scene.until(
        "giant", lambda obj: "has" in condition(obj, "Placed").get("message", "")
    )
    assert "MiB memory" in condition(obj, "Placed")["message"]
    assert condition(obj, "Placed")["reason"] in ("HostFull", "NoHostFits")


def test_a_name_that_somebody_elses_domain_has(real: LibvirtStage) -> None:
    """The machine gets another one, and theirs is never touched."""
    name = f"{real.scene.namespace}.popular"
    theirs = real.outside.defineXML(
        f"<domain type='qemu'><name>{name}</name><memory unit='MiB'>64</memory>"
        "<os><type arch='x86_64' machine='q35'>hvm</type></os></domain>"
    )
    before = theirs.XMLDesc()
    try:
        obj = real.deaf("popular")
        assert real.domain(obj).name() == f"{name}.{obj['metadata']['uid'][:8]}"
        real.scene.api.delete_machine(real.scene.namespace, "popular")
        real.scene.until_gone("popular")
        assert theirs.XMLDesc() == before
    finally:
        theirs.undefine()


@pytest.fixture
def own_daemon(tmp_path: Path) -> Iterator[LibvirtDaemon]:
    """A daemon that the test may break."""
    daemon = LibvirtDaemon(tmp_path / "daemon", before="mkdir -p /var/lib/libvirt/novacron")
    yield daemon.start()
    daemon.stop()


@pytest.fixture
def fragile(
    own_daemon: LibvirtDaemon, libvirt_operator: RunningOperator, api: Api, images: ImageServer
) -> Iterator[LibvirtStage]:
    """The operator with a host of its own daemon."""
    scene = Stage(api, libvirt_operator, libvirt_operator.namespaces[0], [])
    host = scene.add_host(driver="libvirt", endpoint=own_daemon.uri, simulation=None)
    yield LibvirtStage(scene, host, own_daemon, images)
    scene.clear()


def test_a_disk_that_is_full(fragile: LibvirtStage) -> None:
    """The machine waits with a reason, and runs when there is room again."""
    pool = "/var/lib/libvirt/novacron"
    fragile.daemon.in_its_mounts("mount", "-t", "tmpfs", "-o", "size=4m", "none", pool)
    fragile.daemon.in_its_mounts(
        "dd", "if=/dev/zero", f"of={pool}/junk", "bs=1M", "count=3", "status=none"
    )
    # The pool's size was read when it was full of room; what counts is what happens.
    fragile.create("squeezed", fragile.images.add("big.raw", DEAF * 3), disk="3Mi")
    obj = fragile.scene.until(
        "squeezed", lambda obj: condition(obj, "Placed").get("status") == "False"
    )
    assert condition(obj, "Placed")["reason"] in ("HostFull", "NoHostFits")
    fragile.daemon.in_its_mounts("umount", "-l", pool)
    fragile.scene.until_running("squeezed")


def test_a_daemon_that_dies_hangs_and_comes_back(fragile: LibvirtStage) -> None:
    """The host says that it is away; its machines stay as they are and go on afterwards."""
    obj = fragile.deaf("patient")
    process = fragile.daemon.process
    assert process is not None
    process.kill()
    process.wait()
    away = fragile.scene.until_host(
        fragile.host, lambda obj: condition(obj, "Ready")["status"] == "False"
    )
    assert condition(away, "Ready")["reason"] == "HostUnreachable"
    unknown = fragile.scene.until(
        "patient", lambda obj: condition(obj, "Ready")["status"] == "Unknown"
    )
    assert unknown["status"]["phase"] == "Running", "as far as anyone knows"
    fragile.daemon.start()
    fragile.scene.until_running("patient")
    assert fragile.domain(obj).isActive(), "the guest outlived its daemon"

    process = fragile.daemon.process
    assert process is not None
    os.kill(process.pid, signal.SIGSTOP)
    try:
        fragile.scene.until_host(
            fragile.host, lambda obj: condition(obj, "Ready")["status"] == "False"
        )
    finally:
        os.kill(process.pid, signal.SIGCONT)
    fragile.scene.until_running("patient")


def test_a_daemon_that_is_not_there_at_first(
    tmp_path: Path, libvirt_operator: RunningOperator, api: Api, images: ImageServer
) -> None:
    """Declared today, installed tomorrow."""
    daemon = LibvirtDaemon(tmp_path / "daemon")
    scene = Stage(api, libvirt_operator, libvirt_operator.namespaces[0], [])
    host = scene.declare_host(driver="libvirt", endpoint=daemon.uri, simulation=None)
    obj = scene.until_host(host, lambda obj: bool(condition(obj, "Ready")))
    assert condition(obj, "Ready")["reason"] == "HostUnreachable"
    assert "cannot be reached" in condition(obj, "Ready")["message"]
    daemon.start()
    try:
        scene.until_host(host, lambda obj: condition(obj, "Ready")["status"] == "True")
        scene.clear()
    finally:
        daemon.stop()


def test_a_host_without_qemu(tmp_path: Path, libvirt_operator: RunningOperator, api: Api) -> None:
    """It answers, but nothing could ever run there."""
    hidden = "for f in /usr/bin/qemu-system-*; do mount --bind /dev/null $f; done"
    daemon = LibvirtDaemon(tmp_path / "daemon", before=hidden).start()
    scene = Stage(api, libvirt_operator, libvirt_operator.namespaces[0], [])
    try:
        host = scene.declare_host(driver="libvirt", endpoint=daemon.uri, simulation=None)
        obj = scene.until_host(host, lambda obj: bool(condition(obj, "Ready")))
        assert condition(obj, "Ready")["reason"] == "NoQemu"
        assert "install qemu-system-x86" in condition(obj, "Ready")["message"]
        scene.clear()
    finally:
        daemon.stop()
