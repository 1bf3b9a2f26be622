"""A small operator for tests: one kind of its own, and webhooks for it on loopback."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from typing import Any

from novacron.localcluster.controlplane import ControlPlane
from novacron.runtime.admission import Webhooks
from novacron.runtime.bind import Bind
from novacron.runtime.certificate_pair import Certificates
from novacron.runtime.certificates import CertificateSecret
from novacron.runtime.client import Client
from novacron.runtime.errors import ApiError, NotFound
from novacron.runtime.resource import Key, Object, Resource
from novacron.runtime.webhook import WebhookServer
from novacron.runtime.webhook_configuration import (
    MUTATING_WEBHOOKS,
    VALIDATING_WEBHOOKS,
    UrlEndpoint,
    WebhookConfiguration,
)
from novacron.runtime.webhook_upkeep import WebhookUpkeep

__all__ = ["HOSTS", "Operator", "eventually", "new_kinds", "running", "steady_creates", "widget"]

BIND = Bind("127.0.0.1", 0, "webhooks", "--webhook-bind-addr")
HOSTS = ("localhost", "127.0.0.1")
DEADLINE = timedelta(seconds=60)


async def eventually(claim: Callable[[], Awaitable[bool]]) -> None:
    """Wait until a claim holds: API servers learn of configurations a moment later."""
    async with asyncio.timeout(DEADLINE.total_seconds()):
        while True:
            if await claim():
                return
            await asyncio.sleep(0.05)


def widget(resource: Resource, namespace: str, name: str, **spec: Any) -> Object:
    """Return a widget."""
    head = {"apiVersion": resource.api_version, "kind": resource.kind}
    return {**head, "metadata": {"namespace": namespace, "name": name}, "spec": spec}


def new_kinds(plane: ControlPlane, number: int) -> list[Resource]:
    """Serve kinds, each in a group of its own and in two versions, stored as v1.

    All at once, because a new kind's first create takes the API server two seconds.
    """
    groups = [f"t{uuid.uuid4().hex[:8]}.novacron.io" for _ in range(number)]
    kinds = [Resource(group, "v1", "widgets", "Widget") for group in groups]
    definitions = {"apiVersion": "v1", "kind": "List", "items": [_definition(k) for k in kinds]}
    plane.kubectl("create", "-f", "-", input=json.dumps(definitions))
    names = [f"crd/{kind}" for kind in kinds]
    plane.kubectl("wait", "--for=condition=Established", "--timeout=60s", *names)
    return kinds


def _definition(kind: Resource) -> Object:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    versions = [
        {
            "name": version,
            "served": True,
            "storage": version == kind.version,
            "schema": {"openAPIV3Schema": schema},
        }
        for version in ("v1", "v2")
    ]
    names = {"plural": kind.plural, "singular": "widget", "kind": kind.kind}
    spec = {"group": kind.group, "scope": "Namespaced", "names": names, "versions": versions}
    head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return {**head, "metadata": {"name": str(kind)}, "spec": spec}


@dataclass(slots=True)
class Operator:
    """One replica that serves webhooks. Time stands still unless a test moves it."""

    client: Client
    namespace: str
    webhooks: Webhooks
    name: str = field(default_factory=lambda: f"test-{uuid.uuid4().hex[:8]}")
    leads: bool = True
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    server: WebhookServer = field(init=False)
    secret: CertificateSecret = field(init=False)
    upkeep: WebhookUpkeep = field(init=False)

    async def start(self, certificates: Certificates | None = None) -> None:
        """Serve, and tell the API server; with given certificates when the Secret is absent."""
        key = Key(self.namespace, self.name)
        self.secret = CertificateSecret(self.client, key, HOSTS, clock=lambda: self.now)
        self.secret.current = certificates
        self.server = WebhookServer(self.webhooks, BIND, timedelta(seconds=2))
        await self.server.start(await self.secret.load())
        configuration = WebhookConfiguration(
            self.client,
            self.name,
            UrlEndpoint(f"https://127.0.0.1:{self.server.port}"),
            self.webhooks,
        )
        self.upkeep = WebhookUpkeep(
            self.server, self.secret, configuration, leads=lambda: self.leads
        )
        await self.upkeep.once()

    async def stop(self) -> None:
        """Stop serving and take the configurations away, as a purge does."""
        await self.server.stop()
        for resource in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS):
            try:
                await self.client.delete(resource, self.name)
            except NotFound:
                continue

    async def configured(self) -> None:
        """Wait until the API server calls what was registered, for every resource."""
        for hook in (self.webhooks.mutating | self.webhooks.validating).values():
            await eventually(partial(self._asks, hook.resource))

    async def _asks(self, resource: Resource) -> bool:
        """Create a canary: it comes back changed or is refused once the webhooks are called."""
        name = f"canary-{uuid.uuid4().hex[:8]}"
        try:
            made = await self.client.create(
                resource, widget(resource, self.namespace, name, size=0, canary=True)
            )
        except ApiError:
            return True
        await self.client.delete(resource, name, self.namespace)
        return bool(made["spec"].get("greeted"))


@asynccontextmanager
async def running(operator: Operator) -> AsyncIterator[Operator]:
    """Run an operator until the end of the block."""
    await operator.start()
    try:
        await operator.configured()
        yield operator
    finally:
        await operator.stop()


@asynccontextmanager
async def steady_creates(
    client: Client, resource: Resource, namespace: str
) -> AsyncIterator[list[Object]]:
    """Create widgets all through the block; a create that fails ends it with its error."""
    created: list[Object] = []
    numbers = count()
    done = asyncio.Event()

    async def create() -> None:
        while not done.is_set():
            body = widget(resource, namespace, f"widget-{next(numbers)}")
            created.append(await client.create(resource, body))

    async with asyncio.TaskGroup() as group:
        for _ in range(6):
            group.create_task(create())
        yield created
        done.set()
