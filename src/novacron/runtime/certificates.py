"""The webhooks' certificates: what they are, and the Secret in which replicas share them.

Whoever comes first makes the Secret; the leader renews it. Certificates are made by ``issuing``
in a process of its own (``issuing_apart``).
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from novacron.runtime import issuing_apart
from novacron.runtime.certificate_pair import Certificates, Lifetimes
from novacron.runtime.client import Client
from novacron.runtime.errors import AlreadyExists, Conflict, NotFound
from novacron.runtime.resource import SECRETS, Key, Object

__all__ = ["CertificateSecret", "Certificates", "Lifetimes"]


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(slots=True)
class CertificateSecret:
    """The Secret that all replicas read and the leader renews."""

    client: Client
    key: Key
    hosts: tuple[str, ...]
    lifetimes: Lifetimes = field(default_factory=Lifetimes)
    clock: Callable[[], datetime] = _now
    current: Certificates | None = field(default=None, repr=False)
    _checked: tuple[Certificates, bytes, datetime] | None = field(default=None, repr=False)

    async def load(self) -> Certificates:
        """Return the shared certificates; made when absent, restored when lost or damaged."""

        async def wanted(held: Certificates | None) -> Certificates:
            return held or await self._known()

        return await self._settle(wanted)

    async def renew(self, trusted: bytes) -> Certificates:
        """Return the shared certificates, renewed where due. For the leader alone.

        A new authority signs only when it is among the trusted ones: those that the API server
        was told of in an earlier round.
        """

        async def wanted(held: Certificates | None) -> Certificates:
            known = held or await self._known()
            return (
                known if self._is_current(known, trusted) else await self._renewed(known, trusted)
            )

        return await self._settle(wanted)

    def _is_current(self, known: Certificates, trusted: bytes) -> bool:
        # Nothing ends within a tenth of a lifetime of having been found good.
        if self._checked is None:
            return False
        certificates, told, moment = self._checked
        fresh_enough = timedelta(0) <= self.clock() - moment < self.lifetimes.server / 10
        as_trusted = told == trusted or not known.changes_authority
        return fresh_enough and certificates == known and as_trusted

    async def _renewed(self, known: Certificates, trusted: bytes) -> Certificates:
        now = self.clock()
        renewed = await issuing_apart.renewed(known, self.hosts, now, self.lifetimes, trusted)
        self._checked = (renewed, trusted, now) if renewed == known else None
        return renewed

    async def _settle(
        self, wanted: Callable[[Certificates | None], Awaitable[Certificates]]
    ) -> Certificates:
        """Bring the Secret to what is wanted of what it holds."""
        while True:
            secret = await self._read()
            held = Certificates.from_secret(secret) if secret else None
            self.current = await wanted(held)
            if self.current == held:
                return self.current
            try:
                await self._write(secret, self.current)
            except NotFound:
                if secret is None:
                    raise  # there is no such namespace
            except (AlreadyExists, Conflict):
                pass
            else:
                return self.current
            # Another replica was faster: take what it wrote.

    async def _known(self) -> Certificates:
        if self.current is not None:
            return self.current
        now = self.clock()
        made = await issuing_apart.fresh(self.hosts, now, self.lifetimes)
        self._checked = (made, b"", now)
        return made

    async def _read(self) -> Object | None:
        try:
            return await self.client.get(SECRETS, self.key.name, self.key.namespace)
        except NotFound:
            return None

    async def _write(self, secret: Object | None, certificates: Certificates) -> None:
        data = certificates.data()
        if secret:
            version = {"resourceVersion": secret["metadata"]["resourceVersion"]}
            patch = {"metadata": version, "data": data}
            await self.client.patch(SECRETS, self.key.name, patch, self.key.namespace)
            return
        metadata = {
            "name": self.key.name,
            "namespace": self.key.namespace,
            "labels": {"app.kubernetes.io/managed-by": "novacron"},
        }
        body = {"metadata": metadata, "type": "kubernetes.io/tls", "data": data}
        await self.client.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", **body})
