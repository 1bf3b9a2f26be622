"""The operator's webhooks: what they check, where they are reached, and their upkeep."""

from collections.abc import Callable
from urllib.parse import urlsplit

from novacron.app.registry import VIRTUAL_MACHINES, Family
from novacron.app.rights import CERTIFICATES, WEBHOOKS
from novacron.app.settings import Settings
from novacron.families.novacron.admission import VirtualMachineAdmission
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

__all__ = ["webhook_upkeep"]

SERVICE = "novacron-webhook"


def webhook_upkeep(
    settings: Settings, families: tuple[Family, ...], client: Client, leads: Callable[[], bool]
) -> WebhookUpkeep | None:
    """Return the webhooks of these families, ready to be started, or None when switched off."""
    bind = Bind.parse(settings.webhook_bind_addr, purpose="webhooks", flag="--webhook-bind-addr")
    if bind is None:
        return None
    webhooks = _handlers(settings, families)
    return WebhookUpkeep(
        server=WebhookServer(webhooks, bind),
        secret=CertificateSecret(client, Key(settings.namespace, CERTIFICATES), _names(settings)),
        configuration=WebhookConfiguration(client, WEBHOOKS, _endpoint(settings), webhooks),
        leads=leads,
    )


def _handlers(settings: Settings, families: tuple[Family, ...]) -> Webhooks:
    webhooks = Webhooks()
    if any(family.name == "novacron" for family in families):
        admission = VirtualMachineAdmission(settings.minimum_memory)

        def check(obj: Object, old: Object | None, _: str) -> list[str]:
            return admission.problems(obj, old)

        # A call costs the API server as much as storing the object, so it asks about those
        # alone that its own arithmetic finds small.
        webhooks.validate(
            VIRTUAL_MACHINES, check, conditions={"is-small": _smaller_than(settings.minimum_memory)}
        )
    return webhooks


def _smaller_than(memory: str) -> str:
    asked = "object.spec.template.spec.resources.memory"
    return f"quantity(string({asked})).isLessThan(quantity('{memory}'))"


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
