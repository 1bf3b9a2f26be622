"""Webhooks as a real API server calls them."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from novacron.localcluster.controlplane import ControlPlane
from novacron.runtime import issuing_apart
from novacron.runtime.admission import Webhooks
from novacron.runtime.certificate_pair import Certificates, Lifetimes
from novacron.runtime.certificates import CertificateSecret
from novacron.runtime.client import Client
from novacron.runtime.errors import ApiError, Invalid
from novacron.runtime.issuing import fresh, renewed
from novacron.runtime.resource import SECRETS, Key, Object, Resource
from novacron.runtime.webhook_configuration import (
    CUSTOM_RESOURCE_DEFINITIONS,
    MUTATING_WEBHOOKS,
    VALIDATING_WEBHOOKS,
    ServiceEndpoint,
    WebhookConfiguration,
)
from webhook_operator import (
    HOSTS,
    Operator,
    eventually,
    new_kinds,
    running,
    steady_creates,
    widget,
)

LIFETIMES = Lifetimes()


@pytest.fixture
async def client(control_plane: ControlPlane) -> AsyncIterator[Client]:
    async with Client.from_kubeconfig(control_plane.kubeconfig) as connected:
        yield connected


@pytest.fixture(scope="module")
def kinds(control_plane: ControlPlane) -> Iterator[list[Resource]]:
    """Kinds to take from, one or two a test."""
    made = new_kinds(control_plane, 14)
    names = [f"crd/{kind}" for kind in made]
    yield made
    control_plane.kubectl("delete", "--wait=false", *names)


def greet(obj: Object, old: Object | None, operation: str) -> Object:
    """Default the size and leave a mark, as a defaulting webhook does."""
    obj["spec"].setdefault("size", 3)
    obj["spec"]["greeted"] = True
    return obj


def judge(obj: Object, old: Object | None, operation: str) -> list[str]:
    """Demand a size of at least one."""
    return [] if obj["spec"].get("size", 0) >= 1 else ["spec.size must be at least 1"]


async def test_defaults_are_set_and_bad_objects_refused_with_their_sentence(
    client: Client, namespace: str, kinds: list[Resource]
) -> None:
    """What a user sees: a filled-in object, or one sentence that says what to change."""
    widgets = kinds.pop()
    webhooks = Webhooks()
    webhooks.mutate(widgets, greet)
    webhooks.validate(widgets, judge)
    async with running(Operator(client, namespace, webhooks)):
        made = await client.create(widgets, widget(widgets, namespace, "good"))
        assert made["spec"] == {"size": 3, "greeted": True}
        with pytest.raises(Invalid) as refused:
            await client.create(widgets, widget(widgets, namespace, "bad", size=0))
    assert refused.value.message == (
        f'admission webhook "{widgets}" denied the request: '
        f"Widget {namespace}/bad is refused: spec.size must be at least 1"
    )


async def test_updates_that_leave_the_spec_alone_are_not_sent(
    client: Client, namespace: str, kinds: list[Resource]
) -> None:
    """Controllers write finalizers and labels all day; none of them is worth a call."""
    calls: list[tuple[int | None, int]] = []

    def note(obj: Object, old: Object | None, operation: str) -> list[str]:
        if "canary" not in obj.get("spec", {}):
            calls.append((old["spec"]["size"] if old else None, obj["spec"]["size"]))
        return judge(obj, old, operation)

    widgets = kinds.pop()
    webhooks = Webhooks()
    webhooks.validate(widgets, note)
    async with running(Operator(client, namespace, webhooks)):
        await client.create(widgets, widget(widgets, namespace, "one", size=1))
        labels = {"metadata": {"labels": {"a": "b"}, "finalizers": ["novacron.io/test"]}}
        await client.patch(widgets, "one", labels, namespace)
        await client.patch(widgets, "one", {"spec": {"size": 2}}, namespace)
        await client.patch(widgets, "one", {"metadata": {"finalizers": None}}, namespace)
        await client.delete(widgets, "one", namespace)
    # Where its watch cache lags behind, the API server tries a patch on the old object first, asks
    # about it, and asks the very same again with the new one.
    assert list(dict.fromkeys(calls)) == [(None, 1), (1, 2)]


async def test_a_condition_spares_the_calls_that_can_only_say_yes(
    client: Client, namespace: str, kinds: list[Resource]
) -> None:
    """A call costs the API server half as much as the create itself; CEL costs it nothing."""
    calls: list[str] = []

    def note(obj: Object, old: Object | None, operation: str) -> list[str]:
        calls.append(obj["metadata"]["name"])
        return judge(obj, old, operation)

    widgets = kinds.pop()
    webhooks = Webhooks()
    webhooks.validate(widgets, note, conditions={"small": "object.spec.size < 5"})
    async with running(Operator(client, namespace, webhooks)):
        calls.clear()
        for name, size in (("small", 4), ("large", 5)):
            await client.create(widgets, widget(widgets, namespace, name, size=size))
    assert calls == ["small"]


async def test_writing_the_same_configuration_again_writes_nothing(
    client: Client, namespace: str, kinds: list[Resource]
) -> None:
    """The leader compares every minute; an idle operator makes no writes."""
    widgets = kinds.pop()
    webhooks = Webhooks()
    webhooks.mutate(widgets, greet)
    webhooks.validate(widgets, judge)
    webhooks.convert(widgets, convert)
    async with running(Operator(client, namespace, webhooks)) as operator:
        verbs: list[str] = []
        client.observer = Verbs(verbs)
        await operator.upkeep.once()
        assert set(verbs) == {"get"}


class Verbs:
    """Remembers what the client did."""

    def __init__(self, verbs: list[str]) -> None:
        self.verbs = verbs

    def request_done(self, verb: str, *_: float) -> None:
        self.verbs.append(verb)


async def test_a_replica_that_begins_to_lead_is_called_at_once(
    client: Client, namespace: str, kinds: list[Resource]
) -> None:
    """Outside of a cluster each replica has an address of its own, and the old leader's is dead."""
    webhooks = Webhooks()
    webhooks.validate(kinds.pop(), judge)
    operator = Operator(client, namespace, webhooks, leads=False)
    await operator.start()
    operator.upkeep.every = timedelta(hours=1)
    upkeep = asyncio.create_task(operator.upkeep.run())
    try:
        assert operator.upkeep.check() is None
        operator.leads = True
        assert operator.upkeep.check() == "the API server has not been told of them yet"
        await operator.configured()
        assert operator.upkeep.check() is None
    finally:
        upkeep.cancel()
        await operator.stop()


async def test_a_webhook_that_is_no_longer_registered_is_taken_out(
    client: Client, namespace: str, kinds: list[Resource]
) -> None:
    """A family that was switched off must not leave a call to nowhere behind."""
    widgets, others = kinds.pop(), kinds.pop()
    webhooks = Webhooks()
    for resource in (widgets, others):
        webhooks.validate(resource, judge)
    async with running(Operator(client, namespace, webhooks)) as operator:
        del webhooks.validating[str(others)]
        await operator.upkeep.once()
        found = await client.get(VALIDATING_WEBHOOKS, operator.name)
        assert [hook["name"] for hook in found["webhooks"]] == [str(widgets)]


async def test_a_service_takes_the_place_of_a_url(
    client: Client, namespace: str, kinds: list[Resource]
) -> None:
    """An operator that moves into the cluster leaves no second address behind."""
    widgets = kinds.pop()
    webhooks = Webhooks()
    webhooks.mutate(widgets, greet)
    webhooks.convert(widgets, convert)
    async with running(Operator(client, namespace, webhooks)) as operator:
        endpoint = ServiceEndpoint(namespace, "webhooks", 9443)
        moved = WebhookConfiguration(client, operator.name, endpoint, webhooks)
        await moved.write((await operator.secret.load()).authorities)
        (hook,) = (await client.get(MUTATING_WEBHOOKS, operator.name))["webhooks"]
        definition = await client.get(CUSTOM_RESOURCE_DEFINITIONS, str(widgets))
    service = {"namespace": namespace, "name": "webhooks", "port": 9443}
    configs = (hook["clientConfig"], definition["spec"]["conversion"]["webhook"]["clientConfig"])
    assert [config["service"] for config in configs] == [
        service | {"path": f"/mutate/{widgets}"},
        service | {"path": "/convert"},
    ]
    assert not any("url" in config for config in configs)


async def test_without_an_operator_defaults_are_skipped_and_validation_refuses(
    client: Client, namespace: str, kinds: list[Resource]
) -> None:
    """Defaults have stand-ins; an object that nobody judged has none."""
    defaulted, judged = kinds.pop(), kinds.pop()
    webhooks = Webhooks()
    webhooks.mutate(defaulted, greet)
    webhooks.validate(judged, judge)
    async with running(Operator(client, namespace, webhooks)) as operator:
        await operator.server.stop()
        made = await client.create(defaulted, widget(defaulted, namespace, "one"))
        assert made["spec"] == {}
        with pytest.raises(ApiError, match=f'failed calling webhook "{judged}".*refused'):
            await client.create(judged, widget(judged, namespace, "one", size=1))


async def test_a_handler_that_fails_counts_as_an_operator_that_is_down(
    client: Client, namespace: str, kinds: list[Resource]
) -> None:
    """A mistake in a default must not lock users out; one in a validation must not let them in."""

    def broken(obj: Object, old: Object | None, operation: str) -> Any:
        raise KeyError("image")

    defaulted, judged = kinds.pop(), kinds.pop()
    webhooks = Webhooks()
    webhooks.mutate(defaulted, broken)
    webhooks.validate(judged, broken)
    operator = Operator(client, namespace, webhooks)
    await operator.start()
    try:
        sentence = f"the operator failed on Widget {namespace}/.* with KeyError"

        async def refused() -> bool:
            try:
                await client.create(judged, widget(judged, namespace, "one"))
            except ApiError:
                return True
            await client.delete(judged, "one", namespace)
            return False

        await eventually(refused)
        with pytest.raises(ApiError, match=sentence):
            await client.create(judged, widget(judged, namespace, "one"))
        await client.create(defaulted, widget(defaulted, namespace, "one"))
    finally:
        await operator.stop()


def convert(obj: Object, wanted: str) -> Object:
    """The size of v1 is the width of v2."""
    old, new = ("size", "width") if wanted.endswith("/v2") else ("width", "size")
    if obj["spec"].get(old) == 13:
        raise ValueError("13 has no like")
    spec = {new if field == old else field: value for field, value in obj["spec"].items()}
    return {**obj, "spec": spec}


async def test_two_served_versions_are_converted_both_ways(
    client: Client, namespace: str, kinds: list[Resource]
) -> None:
    """Stored as v1, written and read as either; validation sees its own version of both."""
    first = kinds.pop()
    second = Resource(first.group, "v2", first.plural, first.kind)
    webhooks = Webhooks()
    webhooks.convert(first, convert)
    webhooks.validate(first, judge)
    async with running(Operator(client, namespace, webhooks)):
        await client.create(first, widget(first, namespace, "one", size=5))

        async def converted() -> bool:
            spec: Object = (await client.get(second, "one", namespace))["spec"]
            return spec == {"width": 5}

        await eventually(converted)
        await client.create(second, widget(second, namespace, "two", width=7))
        listed = await client.list(first, namespace)
        assert [each["spec"] for each in listed] == [{"size": 5}, {"size": 7}]
        with pytest.raises(Invalid, match=r"spec.size must be at least 1"):
            await client.create(second, widget(second, namespace, "bad", width=0))
        with pytest.raises(ApiError, match=rf"Widget {namespace}/odd: 13 has no like"):
            await client.create(second, widget(second, namespace, "odd", width=13))


async def test_replicas_that_start_together_share_one_secret(
    client: Client, namespace: str
) -> None:
    """The API server trusts one authority, whichever replica it reaches."""
    key = Key(namespace, "shared")
    replicas = [CertificateSecret(client, key, HOSTS) for _ in range(4)]
    loaded = await asyncio.gather(*(replica.load() for replica in replicas))
    assert len({each.certificate for each in loaded}) == 1
    assert (await client.get(SECRETS, key.name, namespace))["type"] == "kubernetes.io/tls"


async def test_certificates_are_made_once_and_then_left_alone(
    client: Client, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when the API server was told of their authority: each look at them is a process."""
    ordered = 0

    async def counted(*given: Any) -> Certificates:
        nonlocal ordered
        ordered += 1
        return await order(*given)

    order = issuing_apart._ordered
    monkeypatch.setattr(issuing_apart, "_ordered", counted)
    leader = CertificateSecret(client, Key(namespace, "webhooks"), HOSTS)
    made = await leader.renew(b"")
    assert await leader.renew(made.authorities) == made
    assert ordered == 1


@pytest.mark.parametrize("deleted", [True, False])
async def test_a_lost_or_damaged_secret_is_restored_from_memory(
    client: Client, namespace: str, deleted: bool
) -> None:
    """The authority stays the same, so that nothing has to be trusted anew."""
    key = Key(namespace, "shared")
    replica = CertificateSecret(client, key, HOSTS)
    before = await replica.load()
    if deleted:
        await client.delete(SECRETS, key.name, namespace)
    else:
        other = fresh(HOSTS, datetime.now(UTC), LIFETIMES)
        mixed = Certificates(before.certificate, other.key, before.authorities, b"")
        await client.patch(SECRETS, key.name, {"data": mixed.data()}, namespace)
    assert await replica.load() == before
    assert await CertificateSecret(client, key, HOSTS).load() == before


def served_by(operator: Operator) -> bytes:
    """Return the certificate that the operator presents, without judging it."""
    return ssl.get_server_certificate(("127.0.0.1", operator.server.port)).encode()


def aged_certificates(now: datetime) -> Certificates:
    """Return certificates as old as ours can get: both parts are due, the authority just now.

    So all that is made of them is valid for the API server, which has its own clock.
    """
    made = fresh(HOSTS, now - LIFETIMES.authority * 2 / 3, LIFETIMES)
    issued = now - timedelta(days=60, hours=18)
    return renewed(made, HOSTS, issued, LIFETIMES, made.authorities)


async def test_certificate_authority_and_leader_are_replaced_under_load_without_a_failure(
    client: Client, namespace: str, kinds: list[Resource]
) -> None:
    """Rotation happens at night, by itself: no create may ever fail because of it."""
    now = datetime.now(UTC)
    aged = aged_certificates(now)
    widgets = kinds.pop()
    webhooks = Webhooks()
    webhooks.mutate(widgets, greet)
    webhooks.validate(widgets, judge)
    # Long enough ago for what was found good then to be looked at again.
    leader = Operator(client, namespace, webhooks, now=now - LIFETIMES.server / 9)
    await leader.start(aged)
    follower = Operator(client, namespace, webhooks, leader.name, leads=False)
    await follower.start()

    async def rotate(time: datetime) -> Certificates:
        leader.now = time
        await leader.upkeep.once()
        await follower.upkeep.once()
        held = await leader.secret.load()
        for replica in (leader, follower):
            assert await asyncio.to_thread(served_by, replica) == held.certificate
        await asyncio.sleep(1)
        return held

    try:
        await leader.configured()
        async with steady_creates(client, widgets, namespace) as created:
            times = (now - timedelta(hours=12), now, now, now)
            first, added, signed, settled = [await rotate(time) for time in times]
            # The other replica takes over at its own address, so all connections are made anew.
            leader.leads, follower.leads = False, True
            await follower.upkeep.once()
            await asyncio.sleep(1)
            await leader.server.stop()
            await asyncio.sleep(1)
    finally:
        await leader.stop()
        await follower.stop()
    assert len(created) > 20
    assert all(each["spec"]["greeted"] for each in created)
    assert aged.certificate != first.certificate
    assert aged.authorities == first.authorities
    assert added.certificate == first.certificate
    assert added.authorities.endswith(first.authorities)
    assert len(added.authorities) > len(first.authorities)
    assert signed.certificate != first.certificate
    assert signed.authorities == added.authorities
    assert settled == signed
