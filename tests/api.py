"""A plain client for tests, as the cluster's administrator; costs far less than kubectl."""

import http.client
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from novacron.runtime.connection import Connection, from_kubeconfig

Object = dict[str, Any]

__all__ = ["Api", "Refused"]

IDLE_SECONDS = 5.0
VERSION = "/apis/novacron.io/v1alpha1"


class Refused(Exception):
    """The server said no; the message is its own."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(slots=True)
class Api:
    """One connection at a time to one API server."""

    kubeconfig: Path
    _connection: Connection = field(init=False)
    _http: http.client.HTTPSConnection = field(init=False)
    _used: float = 0.0

    def __post_init__(self) -> None:
        self._connection = from_kubeconfig(self.kubeconfig)
        address = urlsplit(self._connection.server)
        self._http = http.client.HTTPSConnection(
            address.hostname or "", address.port, context=self._connection.tls, timeout=30
        )

    def close(self) -> None:
        """Let go of the connection."""
        self._http.close()

    def call(self, method: str, path: str, body: Any = None, *, merge: bool = False) -> Object:
        """Send one request; raise Refused when the answer is no."""
        if time.monotonic() - self._used > IDLE_SECONDS:
            self._http.close()  # the server may have closed it too; a write could not tell
        kind = "application/merge-patch+json" if merge else "application/json"
        data = None if body is None else json.dumps(body)
        try:
            self._http.request(method, path, data, {"Content-Type": kind})
            answer = self._http.getresponse()
        except (http.client.HTTPException, OSError):
            self._http.close()  # the next call connects anew
            raise
        text = answer.read()
        self._used = time.monotonic()
        if answer.status >= 400:
            raise Refused(answer.status, _message(text))
        parsed: Object = json.loads(text or b"{}")
        return parsed

    def create_namespace(self, name: str) -> None:
        """Create a namespace."""
        self.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})

    def create(self, obj: Object) -> Object:
        """Create a VirtualMachine or a Host."""
        return self.call("POST", _collection(obj["kind"], obj["metadata"].get("namespace")), obj)

    def machine(self, namespace: str, name: str) -> Object | None:
        """Return a VirtualMachine, or None when there is none."""
        return self._find(f"{_collection('VirtualMachine', namespace)}/{name}")

    def host(self, name: str) -> Object | None:
        """Return a Host, or None when there is none."""
        return self._find(f"{_collection('Host', None)}/{name}")

    def machines(self, namespace: str | None = None) -> list[Object]:
        """Return all VirtualMachines."""
        items: list[Object] = self.call("GET", _collection("VirtualMachine", namespace))["items"]
        return items

    def patch_machine(self, namespace: str, name: str, patch: Object) -> Object:
        """Merge a patch into a VirtualMachine."""
        path = f"{_collection('VirtualMachine', namespace)}/{name}"
        return self.call("PATCH", path, patch, merge=True)

    def patch_host(self, name: str, patch: Object) -> Object:
        """Merge a patch into a Host."""
        return self.call("PATCH", f"{_collection('Host', None)}/{name}", patch, merge=True)

    def delete_machine(self, namespace: str, name: str) -> None:
        """Ask for a VirtualMachine to be deleted."""
        self.call("DELETE", f"{_collection('VirtualMachine', namespace)}/{name}")

    def delete_host(self, name: str) -> None:
        """Ask for a Host to be deleted."""
        self.call("DELETE", f"{_collection('Host', None)}/{name}")

    def events(self, namespace: str, name: str) -> list[Object]:
        """Return the events about an object."""
        path = f"/api/v1/namespaces/{namespace}/events?fieldSelector=involvedObject.name={name}"
        items: list[Object] = self.call("GET", path)["items"]
        return items

    def _find(self, path: str) -> Object | None:
        try:
            return self.call("GET", path)
        except Refused as refused:
            if refused.code == 404:
                return None
            raise


def _collection(kind: str, namespace: str | None) -> str:
    plural = {"VirtualMachine": "virtualmachines", "Host": "hosts"}[kind]
    inside = f"/namespaces/{namespace}" if namespace else ""
    return f"{VERSION}{inside}/{plural}"


def _message(answer: bytes) -> str:
    """Return why a request was refused; of a kind that is not known a server says it in words."""
    try:
        return str(json.loads(answer).get("message", ""))
    except ValueError:
        return answer.decode(errors="replace").strip()
