"""Hosts over TLS and over ssh, with what a Secret in the cluster holds.

The daemon, sshd, the certificates and the API server are real; nothing but loopback is used.
"""

import base64
import gc
import json
import logging
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from certificates import Authority
from guest_images import built_in
from libvirt_far import FarHost, Secret, far_host
from local_cluster import processes_under
from novacron.app.libvirt import libvirt_driver
from novacron.app.settings import Settings
from novacron.core.errors import DriverError, Rejected, Unreachable
from novacron.core.host import DeclaredHost
from novacron.core.machine import Power
from novacron.drivers.libvirt import LibvirtDriver
from novacron.drivers.libvirt import connection as connection_module
from novacron.runtime.client import Client
from novacron.runtime.resource import Resource
from operators import eventually as until
from unit.drivers.libvirt.hosts import created, deleted, eventually, left_on, machine

SECRETS = Resource("", "v1", "secrets", "Secret")
NAME = "of-the-host"


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FarHost]:
    """One host for all tests of this module, which has no file that the operator works with.

    Neither images nor scratch: a path of them that is handed to it leads nowhere.
    """
    with far_host([tmp_path_factory.getbasetemp()]) as host:
        yield host


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The operator's images; not links to where the far host could follow them."""
    image = built_in("tiny")
    assert image is not None
    directory = tmp_path_factory.mktemp("images")
    shutil.copy(image, directory / "tiny.qcow2")
    return directory


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A place for temporary files, in which nothing may be left."""
    place = tmp_path / "scratch"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    # Whatever keeps a connection must let go of it by itself: a collector may come much later.
    gc.disable()
    try:
        yield place
        assert list(place.iterdir()) == []
        until(lambda: processes_under(place) == [], lambda: "every ssh has ended", 20)
    finally:
        gc.enable()


@pytest.fixture
def reach(control_plane, namespace, images):
    """Make a driver as the operator does: from a Host and a Secret in the operator's namespace."""
    settings = Settings(namespace=namespace, images_directory=images)

    @asynccontextmanager
    async def reached(
        endpoint: str, secret: Secret | None, named: str | None = NAME
    ) -> AsyncIterator[LibvirtDriver]:
        async with Client.from_kubeconfig(control_plane.kubeconfig, None) as client:
            if secret is not None:
                data = {key: base64.b64encode(value).decode() for key, value in secret.items()}
                body = {"metadata": {"name": NAME}, "data": data}
                await client.create(
                    SECRETS, {"apiVersion": "v1", "kind": "Secret", **body}, namespace
                )
            host = DeclaredHost(
                "uid", "far", "libvirt", endpoint, named, settings={"network": "user"}
            )
            driver = libvirt_driver(host, settings, client)
            yield driver
            await driver.close()

    return reached


def test_a_far_host_sees_no_file_of_the_operators(far, images, scratch):
    """Else a path that means something here only would go unnoticed."""
    for place in (scratch, images, images / "tiny.qcow2"):
        assert place.exists()
        done = subprocess.run(far.daemon.inside("test", "-e", str(place)), check=False)
        assert done.returncode == 1, place


Way = Callable[[FarHost], tuple[str, Secret]]
WAYS: dict[str, Way] = {
    "tls": lambda far: (far.by_tls, far.tls_secret()),
    "ssh": lambda far: (far.by_ssh, far.ssh_secret()),
}


@pytest.mark.parametrize("way", WAYS)
async def test_a_machine_lives_on_a_far_host(far, reach, way, scratch, caplog):
    """Its image goes there by a stream, its words come back; in the end nothing is left."""
    caplog.set_level(logging.DEBUG)
    endpoint, secret = WAYS[way](far)
    plan = machine()
    async with reach(endpoint, secret) as driver:
        await created(driver, plan)
        assert list(scratch.iterdir()) == [], "credentials are files only while connecting"
        await driver.set_power(plan.ref, Power.ON)

        async def ready() -> bool:
            return b"novacron-tiny: ready" in (await driver.console_log(plan.ref)).data

        await eventually(ready, "the guest says that it is ready", 90)
        console = await driver.console(plan.ref)
        await console.write(b"echo $((6*7))-words\n")
        heard = b""
        while b"42-words" not in heard:
            heard += await console.read()
        await console.close()
        seen = await driver.display(plan.ref)
        assert not seen.near
        assert seen.tunnel == (
            f"ssh -N -L {seen.port}:127.0.0.1:{seen.port} -p {far.ssh_port} root@127.0.0.1"
            if way == "ssh"
            else None
        )
        _no_secret_is_seen(secret, caplog.text)
        await deleted(driver, plan)
    assert left_on(far.daemon) == set()


def _no_secret_is_seen(secret: Secret, logged: str) -> None:
    """Look for the private parts in logs, and in the arguments of all processes."""
    private = [value for key, value in secret.items() if "key" in key]
    lines = [line for value in private for line in value.splitlines() if b"-----" not in line]
    arguments = b""
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            arguments += entry.read_bytes()
        except OSError:
            continue
    for line in lines:
        assert line not in arguments
        assert line.decode() not in logged


def _without(key: str) -> Callable[[Secret], Secret]:
    return lambda secret: {name: value for name, value in secret.items() if name != key}


def _with(key: str, value: bytes) -> Callable[[Secret], Secret]:
    return lambda secret: {**secret, key: value}


STRANGERS = Authority("strangers")
STRANGER = STRANGERS.pair("stranger")
REFUSALS = {
    "another authority": (
        "tls",
        lambda _: {"ca.crt": STRANGERS.certificate} | _stranger(),
        Unreachable,
        "its certificate is not from the authority in ca.crt, or not for the name in its endpoint",
    ),
    "a certificate of another authority": (
        "tls",
        lambda secret: secret | _stranger(),
        Unreachable,
        "tls.crt is not from the authority in ca.crt",
    ),
    "a certificate the host does not trust": (
        "tls",
        lambda secret: {"ca.crt": secret["ca.crt"] + STRANGERS.certificate} | _stranger(),
        Unreachable,
        "it does not accept tls.crt",
    ),
    "no tls.key": (
        "tls",
        _without("tls.key"),
        Rejected,
        "its Secret has no tls.key; qemu+tls needs ca.crt, tls.crt, tls.key",
    ),
    "a key of another certificate": (
        "tls",
        _with("tls.key", STRANGER.key),
        Unreachable,
        "tls.key does not belong to tls.crt",
    ),
    "no certificate": (
        "tls",
        _with("tls.crt", b"rubbish"),
        Unreachable,
        "tls.crt is no certificate",
    ),
    "an unknown host key": (
        "ssh",
        _with("known_hosts", b"[127.0.0.1]:1 ssh-ed25519 AAAA\n"),
        Unreachable,
        "its host key is not in known_hosts",
    ),
    "another host key": (
        "ssh",
        None,
        Unreachable,
        "its host key is another than known_hosts says",
    ),
    "no known_hosts": (
        "ssh",
        _without("known_hosts"),
        Rejected,
        "its Secret has no known_hosts; qemu+ssh needs ssh-privatekey, known_hosts",
    ),
    "no private key": (
        "ssh",
        _with("ssh-privatekey", b"rubbish"),
        Unreachable,
        "ssh-privatekey is no private key",
    ),
}


def _stranger() -> Secret:
    return {"tls.crt": STRANGER.certificate, "tls.key": STRANGER.key}


@pytest.mark.parametrize("case", REFUSALS)
async def test_wrong_credentials_are_told_in_one_sentence(far, reach, case, caplog):
    """Of the Secret's own keys, for files are nothing its owner knows of."""
    way, change, remedy, words = REFUSALS[case]
    endpoint, secret = WAYS[way](far)
    given = change(secret) if change else far.ssh_secret(host_key="stranger")
    async with reach(endpoint, given) as driver:
        with pytest.raises(DriverError) as caught:
            await driver.observe(machine().ref)
    assert type(caught.value) is remedy
    assert words in str(caught.value)
    assert str(caught.value).startswith("host far")
    _no_secret_is_seen(given, caplog.text + str(caught.value))


async def test_a_stranger_is_not_let_in_by_ssh(far, reach):
    """The user is named: it may be the wrong one."""
    async with reach(far.by_ssh, far.ssh_secret(key="stranger")) as driver:
        with pytest.raises(Unreachable, match=r"does not let root@127.0.0.1 in with ssh-priv"):
            await driver.observe(machine().ref)


async def test_a_key_whose_last_line_lost_its_end_is_taken(far, reach):
    """Secrets made from a literal have none, and ssh would call it no key."""
    secret = far.ssh_secret()
    secret["ssh-privatekey"] = secret["ssh-privatekey"].rstrip()
    async with reach(far.by_ssh, secret) as driver:
        assert await driver.observe(machine().ref) is None


async def test_a_missing_secret_is_named_and_found_when_it_is_there(far, reach, namespace):
    """It may well be created after the host."""
    async with reach(far.by_tls, None) as driver:
        with pytest.raises(Rejected) as caught:
            await driver.observe(machine().ref)
    assert str(caught.value) == f"there is no Secret {NAME} in namespace {namespace}"
    async with reach(far.by_tls, far.tls_secret()) as driver:
        assert await driver.observe(machine().ref) is None


async def test_a_host_that_takes_the_first_bytes_and_falls_silent_is_given_up(
    far, reach, monkeypatch
):
    """libvirt itself would wait for ever, and so would everybody who comes later."""
    monkeypatch.setattr(connection_module, "OPEN_SECONDS", 1.0)
    monkeypatch.setattr(connection_module, "HANG_UP_SECONDS", 2.0)
    async with reach(far.by_tls, far.tls_secret()) as driver:
        with far.daemon.frozen():
            with pytest.raises(Unreachable, match="does not answer in time"):
                await driver.observe(machine().ref)

            async def given_up() -> bool:
                names = [each.name for each in threading.enumerate()]
                return "libvirt-open-far" not in names

            assert not await given_up()
            await eventually(given_up, "nobody waits for it any more", 10)


def test_libvirt_says_what_went_wrong_to_us_and_not_to_everybody(far):
    """Its library warns of certificates on the error output, beside what it returns."""
    script = (
        "import asyncio, json, sys\n"
        "from novacron.drivers.libvirt import LibvirtDriver, LibvirtHost\n"
        "secret = {key: text.encode() for key, text in json.load(sys.stdin).items()}\n"
        "async def given(): return secret\n"
        "driver = LibvirtDriver(LibvirtHost('far', sys.argv[1]), lambda _: None, given)\n"
        "try: asyncio.run(driver.machines('far'))\n"
        "except Exception as error: print(error)\n"
    )
    given = {"ca.crt": STRANGERS.certificate} | _stranger()
    done = subprocess.run(
        [sys.executable, "-c", script, far.by_tls],
        input=json.dumps({key: value.decode() for key, value in given.items()}),
        capture_output=True,
        text=True,
        check=True,
    )
    assert "not from the authority in ca.crt" in done.stdout
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == ""
