"""How a client says who it is: nothing, a fixed token, a token file that rotates, or a plug-in.

Client certificates are part of the TLS context and not here.
"""

import asyncio
import os
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol

import orjson

from novacron.runtime.errors import Unauthorized

__all__ = ["Anonymous", "Credentials", "ExecPlugin", "StaticToken", "TokenFile"]

# Kubelet rotates projected tokens long before they expire; a minute is what client-go uses.
TOKEN_FILE_MAX_AGE_SECONDS = 60.0
# A plug-in that waits for somebody to type would otherwise hold up every request for ever.
PLUGIN_PATIENCE_SECONDS = 60.0


class Credentials(Protocol):
    """Gives the Authorization header for the next request."""

    async def header(self) -> str | None:
        """Return the header's value, or None when there is none."""

    def forget(self) -> None:
        """Drop what is cached: the server just refused it."""


class Anonymous:
    """No token; a client certificate may speak instead."""

    async def header(self) -> str | None:
        """Return nothing."""
        return None

    def forget(self) -> None:
        """Nothing is remembered."""


@dataclass(frozen=True, slots=True)
class StaticToken:
    """A token that never changes."""

    token: str = field(repr=False)

    async def header(self) -> str | None:
        """Return the bearer token."""
        return f"Bearer {self.token}"

    def forget(self) -> None:
        """There is no other token to take."""


@dataclass(slots=True)
class TokenFile:
    """A token in a file that somebody else keeps fresh (in a pod: the kubelet)."""

    path: Path
    clock: Callable[[], float] = time.monotonic
    _value: str | None = field(default=None, repr=False)
    _read_at: float = 0.0

    async def header(self) -> str | None:
        """Return the token, read again when it is a minute old."""
        now = self.clock()
        if self._value is None or now - self._read_at >= TOKEN_FILE_MAX_AGE_SECONDS:
            self._value = self._read()
            self._read_at = now
        return self._value

    def _read(self) -> str:
        try:
            return f"Bearer {self.path.read_text().strip()}"
        except OSError as error:
            if self._value is not None:
                return self._value  # it may be in the middle of being replaced
            raise Unauthorized(f"the token file cannot be read: {error}") from error

    def forget(self) -> None:
        """Read the file again next time."""
        self._value = None


@dataclass(slots=True)
class ExecPlugin:
    """A credential plug-in as kubeconfig files name them (cloud logins mostly)."""

    command: Sequence[str]
    environment: Mapping[str, str]
    api_version: str
    _token: str | None = field(default=None, repr=False)
    _expires: datetime | None = None
    _running: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def header(self) -> str | None:
        """Return the plug-in's token; run it when there is none or it has expired."""
        async with self._running:  # many requests that need a token need one run
            if self._token is None or self._expired:
                self._token, self._expires = self._parse(await self._run())
            return f"Bearer {self._token}"

    @property
    def _expired(self) -> bool:
        return self._expires is not None and datetime.now(self._expires.tzinfo) >= self._expires

    def forget(self) -> None:
        """Run the plug-in again next time."""
        self._token = None

    async def _run(self) -> bytes:
        info = {
            "apiVersion": self.api_version,
            "kind": "ExecCredential",
            "spec": {"interactive": False},
        }
        environment = {
            **os.environ,
            **self.environment,
            "KUBERNETES_EXEC_INFO": orjson.dumps(info).decode(),
        }
        try:
            process = await asyncio.create_subprocess_exec(
                *self.command, env=environment, stdin=DEVNULL, stdout=PIPE
            )
        except OSError as error:
            raise self._failure(f"cannot be run: {error.strerror}") from error
        try:
            async with asyncio.timeout(PLUGIN_PATIENCE_SECONDS):
                output, _ = await process.communicate()
        except TimeoutError as error:
            raise self._failure(f"did not end in {PLUGIN_PATIENCE_SECONDS:.0f} s") from error
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode != 0:
            raise self._failure(f"ended with code {process.returncode}")
        return output

    def _parse(self, output: bytes) -> tuple[str, datetime | None]:
        try:
            status = orjson.loads(output)["status"]
            token, expiry = status.get("token"), status.get("expirationTimestamp")
            expires = datetime.fromisoformat(expiry) if expiry else None
        except (ValueError, KeyError, TypeError, AttributeError):
            # What it printed may hold a secret and stays out of the message.
            raise self._failure("gave an answer that is no ExecCredential") from None
        if not token:
            raise self._failure("gave no token")
        return token, expires

    def _failure(self, what: str) -> Unauthorized:
        return Unauthorized(f"the credential plug-in {self.command[0]} {what}")
