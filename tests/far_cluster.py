"""A KubeVirt cluster that an operator of another cluster reaches through a wire that can be cut."""

import base64
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import yaml

from kubevirt_bed import KubeVirtBed
from novacron.app.rights import far_kubevirt
from novacron.localcluster.controlplane import ControlPlane
from service_accounts import kubeconfig_of

__all__ = ["Wire", "far_kubeconfig", "grant", "secret", "wire_to"]

Object = dict[str, Any]

ACCOUNT = "novacron"


@dataclass
class Wire:
    """Passes bytes on to a port of this machine, until it is cut."""

    target: int
    listener: socket.socket = field(init=False)
    whole: bool = True
    _ends: set[socket.socket] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        """Where it begins."""
        port: int = self.listener.getsockname()[1]
        return port

    def cut(self) -> None:
        """Let nothing pass, and end what was connected."""
        self.whole = False
        for end in list(self._ends):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        """Let everything pass again."""
        self.whole = True

    def close(self) -> None:
        """Take it away."""
        self.cut()
        self.listener.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            if not self.whole:
                near.close()
                continue
            far = socket.create_connection(("127.0.0.1", self.target))
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._pass, args=(source, sink), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        self._ends.add(source)
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)
        self._ends.discard(source)
        source.close()


@contextmanager
def wire_to(plane: ControlPlane) -> Iterator[Wire]:
    """Lay a wire to a cluster's API server."""
    wire = Wire(int(plane.url.rpartition(":")[2]))
    try:
        yield wire
    finally:
        wire.close()


def grant(bed: KubeVirtBed, account: str = ACCOUNT) -> None:
    """Give an account of the bed's namespace what the operator of another cluster needs."""
    name, subject = f"{bed.namespace}-{account}", {"name": account, "namespace": bed.namespace}
    role: Object = {"name": name}
    rbac = "rbac.authorization.k8s.io"
    objects = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": subject},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRole",
            "metadata": role,
            "rules": far_kubevirt(),
        },
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": role,
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", **subject}],
        },
    ]
    bed.plane.kubectl("apply", "--server-side", "-f", "-", input=yaml.safe_dump_all(objects))


def far_kubeconfig(bed: KubeVirtBed, wire: Wire, account: str = ACCOUNT) -> str:
    """Return how to reach the bed by a wire, as an account that was granted what is needed."""
    document = json.loads(kubeconfig_of(bed.plane, bed.namespace, account).read_text())
    for each in document["clusters"]:
        each["cluster"]["server"] = f"https://127.0.0.1:{wire.port}"
    return json.dumps(document)


def secret(name: str, **entries: str) -> Object:
    """Return a Secret with these entries."""
    data = {key: base64.b64encode(text.encode()).decode() for key, text in entries.items()}
    return {"metadata": {"name": name}, "data": data}
