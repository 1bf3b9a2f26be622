"""Who we are to a real API server, and what we say to its users: tokens, plug-ins, events."""

import asyncio
import json
import stat
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
import yaml

from loopback import until
from novacron.localcluster.controlplane import ControlPlane
from novacron.runtime.cache import Cache
from novacron.runtime.client import Client, Request
from novacron.runtime.connection import Connection, from_kubeconfig
from novacron.runtime.credentials import Anonymous, Credentials, TokenFile
from novacron.runtime.errors import Forbidden, Unauthorized
from novacron.runtime.events import Events
from novacron.runtime.reflector import Reflector
from novacron.runtime.resource import EVENTS, Resource
from widgets import WIDGETS, install_widgets, widget

SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")


@pytest.fixture
async def admin(control_plane: ControlPlane) -> AsyncIterator[Client]:
    await install_widgets(control_plane)
    async with Client.from_kubeconfig(control_plane.kubeconfig) as client:
        yield client


def config_map(name: str, namespace: str) -> dict:
    return {"metadata": {"name": name, "namespace": namespace}}


async def new_token(admin: Client, namespace: str, account: str) -> str:
    """Ask for a token as the kubelet does."""
    path = SERVICE_ACCOUNTS.path(namespace, account, "token")
    body = json.dumps({"spec": {"expirationSeconds": 600}}).encode()
    answer = json.loads(await admin.send(Request("create", "POST", path, body=body)))
    return str(answer["status"]["token"])


@pytest.fixture
async def account(admin: Client, control_plane: ControlPlane, namespace: str) -> str:
    """A service account that may do everything in its namespace."""
    control_plane.kubectl("create", "serviceaccount", "-n", namespace, "operator")
    control_plane.kubectl(
        *("create", "rolebinding", "-n", namespace, "operator"),
        *("--clusterrole=cluster-admin", f"--serviceaccount={namespace}:operator"),
    )
    token = await new_token(admin, namespace, "operator")
    async with Client(connection(control_plane, TokenText(token))) as client:
        # Roles reach the authorizer by a watch of its own.
        await until(lambda: may_list(client, namespace))
    return "operator"


async def may_list(client: Client, namespace: str) -> bool:
    try:
        await client.list(CONFIG_MAPS, namespace)
    except Forbidden:
        return False
    return True


class TokenText(Anonymous):
    """A token in memory."""

    def __init__(self, token: str) -> None:
        self.token = token

    async def header(self) -> str | None:
        return f"Bearer {self.token}"


def connection(plane: ControlPlane, credentials: Credentials) -> Connection:
    """Return a connection with no other identity than these credentials."""
    document = yaml.safe_load(plane.kubeconfig.read_text())
    document["users"][0]["user"] = {}
    path = plane.directory / f"nobody-{id(credentials)}.kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return replace(from_kubeconfig(path), credentials=credentials)


async def test_a_rotated_token_is_taken_up_at_once_when_the_old_one_is_refused(
    admin: Client, control_plane: ControlPlane, namespace: str, account: str, tmp_path: Path
) -> None:
    """The file has a new token, the client still holds the old one: nobody notices."""
    token = tmp_path / "token"
    token.write_text("an.expired.token")
    credentials = TokenFile(token, clock=lambda: 0.0)  # time alone never makes it look again
    async with Client(connection(control_plane, credentials)) as client:
        with pytest.raises(Unauthorized):
            await client.create(CONFIG_MAPS, config_map("a", namespace))
        await credentials.header()
        token.write_text(await new_token(admin, namespace, account))
        await client.create(CONFIG_MAPS, config_map("a", namespace))
        assert (await client.get(CONFIG_MAPS, "a", namespace))["metadata"]["name"] == "a"


async def test_a_watch_goes_on_when_the_token_rotates(
    admin: Client, control_plane: ControlPlane, namespace: str, account: str, tmp_path: Path
) -> None:
    """A watch begun anew with a refused token reads the file again, and the cache goes on."""
    token = tmp_path / "token"
    token.write_text(await new_token(admin, namespace, account))
    credentials = TokenFile(token, clock=lambda: 0.0)
    async with Client(connection(control_plane, credentials)) as client:
        cache = Cache(CONFIG_MAPS)
        reflector = Reflector(client, cache, namespace)
        following = asyncio.create_task(reflector.run())
        await cache.synced()
        # The token goes bad, and every connection with it.
        token.write_text("a.bad.token")
        credentials.forget()
        await credentials.header()
        token.write_text(await new_token(admin, namespace, account))
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        following = asyncio.create_task(reflector.run())
        await admin.create(CONFIG_MAPS, config_map("later", namespace))
        await until(lambda: len(cache) == 1)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


async def test_a_plugin_logs_in(
    admin: Client, control_plane: ControlPlane, namespace: str, account: str, tmp_path: Path
) -> None:
    """A kubeconfig of a cloud names a program; what it prints is our token."""
    (tmp_path / "token").write_text(await new_token(admin, namespace, account))
    plugin = tmp_path / "login"
    plugin.write_text(
        f"#!{sys.executable}\n"
        "import json, pathlib\n"
        f"token = pathlib.Path({str(tmp_path / 'token')!r}).read_text()\n"
        "version = 'client.authentication.k8s.io/v1'\n"
        "print(json.dumps({'apiVersion': version, 'kind': 'ExecCredential',"
        " 'status': {'token': token}}))\n"
    )
    plugin.chmod(plugin.stat().st_mode | stat.S_IXUSR)
    document = yaml.safe_load(control_plane.kubeconfig.read_text())
    document["users"][0]["user"] = {
        "exec": {"command": "./login", "apiVersion": "client.authentication.k8s.io/v1"}
    }
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(document))
    async with Client.from_kubeconfig(kubeconfig) as client:
        assert await client.list(CONFIG_MAPS, namespace) == []


async def test_what_the_role_does_not_allow_is_told_apart(
    admin: Client, control_plane: ControlPlane, namespace: str, account: str
) -> None:
    """Forbidden is not Unauthorized: another token would not help."""
    token = await new_token(admin, namespace, account)
    async with Client(connection(control_plane, TokenText(token))) as client:
        with pytest.raises(Forbidden, match="cannot list"):
            await client.list(CONFIG_MAPS, "kube-system")


async def test_events_are_counted_and_seen_in_describe(
    admin: Client, control_plane: ControlPlane, namespace: str
) -> None:
    """Said three times, then twice more: one line that a user reads."""
    obj = await admin.create(WIDGETS, widget("web", namespace))
    events = Events(admin, "novacron", random=Random(1))
    posting = asyncio.create_task(events.run())
    for _ in range(3):
        events.warning(obj, "NoHostFits", "no host has 64 CPUs")
    await until(lambda: posted(admin, namespace))
    for _ in range(2):
        events.warning(obj, "NoHostFits", "no host has 64 CPUs")
    posting.cancel()
    await asyncio.gather(posting, return_exceptions=True)
    await events.flush()
    found = await admin.list(EVENTS, namespace)
    assert [event["count"] for event in found] == [5]
    described = control_plane.kubectl("describe", "widgets.test.novacron.io/web", "-n", namespace)
    (line,) = (line for line in described.splitlines() if "NoHostFits" in line)
    assert "Warning" in line
    assert "(x5 over" in line
    assert "no host has 64 CPUs" in line


async def posted(admin: Client, namespace: str) -> bool:
    return await admin.list(EVENTS, namespace) != []


async def test_events_of_names_at_the_limit_are_accepted(admin: Client, namespace: str) -> None:
    """253 characters are a name; the event's own name must still fit."""
    name = "n" * 235 + "-" + "n" * 17
    obj = await admin.create(WIDGETS, widget(name, namespace))
    events = Events(admin, "novacron")
    events.normal(obj, "Created", "m" * 3000)
    await events.flush()
    assert len(await admin.list(EVENTS, namespace)) == 1


async def test_listed_objects_say_what_they_are(admin: Client, namespace: str) -> None:
    """The server leaves kind and version out of the items of built-in lists; events need them."""
    await admin.create(CONFIG_MAPS, config_map("a", namespace))
    (obj,) = await admin.list(CONFIG_MAPS, namespace)
    assert (obj["apiVersion"], obj["kind"]) == ("v1", "ConfigMap")
