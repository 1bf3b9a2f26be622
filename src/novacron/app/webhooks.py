"""The operator's webhooks: what they check, where they are reached, and their upkeep."""

from collections.abc import Callable
from urllib.parse import urlsplit

from novacron.app.registry import HOSTS
from novacron.app.rights import CERTIFICATES, WEBHOOKS
from novacron.app.settings import Settings
from novacron.controllers.ledger import Occupancy
from novacron.runtime.admission import Webhooks
from novacron.runtime.bind import Bind
from novacron.runtime.certificates import CertificateSecret
from novacron.runtime.client import Client
from novacron.runtime.resource import Key, Object
from novacron.runtime.webhook import WebhookServer
from novacron.runtime.webhook_configuration import (
    Endpoint,
    ServiceEndpoint,
    UrlEndpoint,
    WebhookConfiguration,
)
from novacron.runtime.webhook_upkeep import WebhookUpkeep

__all__ = ["deletion_of", "webhook_upkeep"]

SERVICE = "novacron-webhook"


def webhook_upkeep(
    settings: Settings,
    client: Client,
    leads: Callable[[], bool],
    occupancy: Callable[[str], Occupancy],
) -> WebhookUpkeep | None:
    """Return the webhooks, ready to be started, or None when they are switched off."""
    bind = Bind.parse(settings.webhook_bind_addr, purpose="webhooks", flag="--webhook-bind-addr")
    if bind is None:
        return None
    webhooks = _handlers(occupancy)
    return WebhookUpkeep(
        server=WebhookServer(webhooks, bind),
        secret=CertificateSecret(client, Key(settings.namespace, CERTIFICATES), _names(settings)),
        configuration=WebhookConfiguration(client, WEBHOOKS, _endpoint(settings), webhooks),
        leads=leads,
    )


def _handlers(occupancy: Callable[[str], Occupancy]) -> Webhooks:
    webhooks = Webhooks()

    def check(host: Object, _old: Object | None, _operation: str) -> list[str]:
        return deletion_of(host, occupancy)

    # What a machine or a host may say is in its definition, where it costs least: merely having
    # a webhook for machines, called or not, costs the API server as much again as storing one.
    webhooks.validate(HOSTS, check, operations=("DELETE",))
    return webhooks


def deletion_of(host: Object, occupancy: Callable[[str], Occupancy]) -> list[str]:
    """Return what speaks against deleting a host."""
    name = host["metadata"]["name"]
    found = occupancy(name)
    return [f"host {name} cannot go: {found}; move or delete them first"] if found else []


def _names(settings: Settings) -> tuple[str, ...]:
    service = f"{SERVICE}.{settings.namespace}.svc"
    host = urlsplit(settings.webhook_url).hostname if settings.webhook_url else None
    return tuple(
        dict.fromkeys(name for name in (host, service, f"{service}.cluster.local") if name)
    )


def _endpoint(settings: Settings) -> Endpoint:
    if settings.webhook_url:
        return UrlEndpoint(settings.webhook_url.rstrip("/"))
    return ServiceEndpoint(settings.namespace, SERVICE)
