"""Tokens of pods' service accounts: asked of the API server, kept until they grow old.

A token is bound to its pod: the API server refuses it when the pod is gone.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import orjson

from novacron.localcluster.node.payload import TokenWish
from novacron.runtime.client import Client, Request
from novacron.runtime.resource import Object, Resource

__all__ = ["SERVICE_ACCOUNTS", "Tokens"]

SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
# As a kubelet does it: a token is replaced when a fifth of its life is left, or after a day.
USED_UP = 0.8
LONGEST_USE = timedelta(hours=24)


class _Token(NamedTuple):
    text: str
    due: datetime


@dataclass(slots=True)
class Tokens:
    """The tokens of one pod."""

    client: Client
    pod: Object
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    _held: dict[TokenWish, _Token] = field(default_factory=dict)

    async def renew(self, wishes: Iterable[TokenWish]) -> timedelta | None:
        """Ask for what is missing or old; return when to come again, or None for never."""
        now = self.clock()
        for wish in wishes:
            held = self._held.get(wish)
            if held is None or held.due <= now:
                self._held[wish] = await self._request(wish, now)
        if not self._held:
            return None
        return min(token.due for token in self._held.values()) - self.clock()

    def get(self, wish: TokenWish) -> str:
        """Return a token that was asked for before."""
        return self._held[wish].text

    async def _request(self, wish: TokenWish, now: datetime) -> _Token:
        metadata, spec = self.pod["metadata"], self.pod["spec"]
        bound = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"]}
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {
                "audiences": [wish.audience] if wish.audience else [],
                "expirationSeconds": wish.seconds,
                "boundObjectRef": {**bound, "uid": metadata["uid"]},
            },
        }
        account = spec.get("serviceAccountName") or "default"
        path = SERVICE_ACCOUNTS.path(metadata["namespace"], account, "token")
        answer = await self.client.send(Request("create", "POST", path, body=orjson.dumps(body)))
        granted = orjson.loads(answer)
        life = timedelta(seconds=granted["spec"]["expirationSeconds"])
        return _Token(granted["status"]["token"], now + min(life * USED_UP, LONGEST_USE))
