"""The key that replicas share: one for all, whoever comes first, and never a weak one."""

import asyncio
import base64

import pytest

from novacron.localcluster.controlplane import ControlPlane
from novacron.runtime.client import Client
from novacron.runtime.errors import Invalid
from novacron.runtime.resource import SECRETS, Key
from novacron.runtime.shared_key import KEY_BYTES, shared_key


async def test_replicas_that_start_at_once_have_one_key(
    control_plane: ControlPlane, namespace: str
) -> None:
    """Each would else take the others' records for forged ones."""
    place = Key(namespace, "records")
    async with Client.from_kubeconfig(control_plane.kubeconfig) as client:
        keys = await asyncio.gather(*(shared_key(client, place) for _ in range(5)))
        assert len(set(keys)) == 1
        assert len(keys[0]) == KEY_BYTES
        assert await shared_key(client, place) == keys[0]
        other = await shared_key(client, Key(namespace, "other-records"))
    assert other != keys[0]


async def test_a_secret_that_holds_no_key_is_said_to(
    control_plane: ControlPlane, namespace: str
) -> None:
    """With one that is short, or empty, anybody could write records."""
    short = {"key": base64.b64encode(b"short").decode()}
    body = {"apiVersion": "v1", "kind": "Secret", "data": short}
    async with Client.from_kubeconfig(control_plane.kubeconfig) as client:
        metadata = {"name": "records", "namespace": namespace}
        await client.create(SECRETS, body | {"metadata": metadata})
        with pytest.raises(Invalid, match=rf"{namespace}/records has no key of 32 bytes: delete"):
            await shared_key(client, Key(namespace, "records"))
