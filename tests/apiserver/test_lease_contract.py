"""What membership and claims rely on, asked of the real API server and of the tests' store."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from lease_world import Store
from novacron.localcluster.controlplane import ControlPlane
from novacron.runtime.client import Client
from novacron.runtime.errors import AlreadyExists, ApiError, Conflict, NotFound
from novacron.runtime.leases import ApiLeases, Lease, Leases, LeaseTiming
from novacron.runtime.resource import LEASES

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NEW = Lease.new("test-leader", LeaseTiming()).taken("me", NOW)


class StoreAtOnce:
    """The tests' store as the protocol wants it."""

    group = "test"

    def __init__(self) -> None:
        self._store = Store()

    async def list(self) -> list[Lease]:
        return self._store.list()

    async def get(self, name: str) -> Lease:
        return self._store.get(name)

    async def create(self, lease: Lease) -> Lease:
        return self._store.create(lease)

    async def replace(self, lease: Lease) -> Lease:
        return self._store.replace(lease)

    async def delete(self, lease: Lease) -> None:
        self._store.delete(lease)


@pytest.fixture(params=["server", "store"])
async def leases(
    request: pytest.FixtureRequest, control_plane: ControlPlane, namespace: str
) -> AsyncIterator[Leases]:
    if request.param == "store":
        yield StoreAtOnce()
        return
    async with Client.from_kubeconfig(control_plane.kubeconfig) as client:
        yield ApiLeases(client, namespace, "test")


async def test_a_lease_is_created_once(leases: Leases) -> None:
    """Two that take an absent claim at the same time: one of them wins."""
    created = await leases.create(NEW)
    assert (created.holder, created.name) == ("me", "test-leader")
    with pytest.raises(AlreadyExists):
        await leases.create(NEW)


async def test_a_lease_is_replaced_only_as_it_was_read(leases: Leases) -> None:
    """The compare-and-swap on which everything rests."""
    created = await leases.create(NEW)
    taken = await leases.replace(created.taken("you", NOW))
    assert taken.version != created.version
    with pytest.raises(Conflict):
        await leases.replace(created.renewed(NOW, {}))
    assert (await leases.get("test-leader")).holder == "you"


async def test_an_unchanged_renewal_is_seen_as_a_change(leases: Leases) -> None:
    """Life is judged by the version, so a renewal has to move it."""
    created = await leases.create(NEW)
    later = NOW.replace(microsecond=1)
    assert (await leases.replace(created.renewed(later, {}))).version != created.version


async def test_a_deleted_lease_does_not_come_back(leases: Leases) -> None:
    """The server would create on PUT; a late renewal must not raise the dead."""
    created = await leases.create(NEW)
    await leases.delete(created)
    with pytest.raises(ApiError) as refused:
        await leases.replace(created.renewed(NOW, {}))
    assert isinstance(refused.value, Conflict | NotFound)
    with pytest.raises(NotFound):
        await leases.get("test-leader")
    with pytest.raises(NotFound):
        await leases.delete(created)


async def test_another_of_the_same_name_is_not_deleted(leases: Leases) -> None:
    """The leader sweeps what it saw, not what came since."""
    created = await leases.create(NEW)
    await leases.delete(created)
    await leases.create(NEW)
    with pytest.raises(Conflict):
        await leases.delete(created)


async def test_a_released_lease_has_no_holder(leases: Leases) -> None:
    """An empty holder is how other clients release theirs, too."""
    created = await leases.create(NEW)
    assert (await leases.replace(created.released(NOW))).holder == ""
    [listed] = await leases.list()
    assert listed.holder == ""
    taken = await leases.replace(listed.taken("you", NOW))
    assert taken.body["spec"]["leaseTransitions"] == 1


async def test_leases_of_others_are_not_listed(control_plane: ControlPlane, namespace: str) -> None:
    """Other programs keep leases in the same namespace; a second operator of ours may, too."""
    async with Client.from_kubeconfig(control_plane.kubeconfig) as client:
        ours = ApiLeases(client, namespace, "test")
        await ours.create(NEW)
        await ApiLeases(client, namespace, "other").create(Lease.new("other-leader", LeaseTiming()))
        await client.create(LEASES, {"metadata": {"name": "test-foreign"}}, namespace)
        assert [lease.name for lease in await ours.list()] == ["test-leader"]
