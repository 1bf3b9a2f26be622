"""How KubeVirt's programs and the stand-in for its nodes are started, and as whom.

Only command lines and credentials; nothing here starts anything.
"""

import hashlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from novacron.localcluster.code_version import code_version
from novacron.localcluster.components import AUTHORITY, LOCAL_NAMES
from novacron.localcluster.controlplane import ADMIN_GROUP, ControlPlane
from novacron.localcluster.kubevirt.names import (
    API,
    CONTROLLER,
    HANDLER_NAME,
    HANDLER_USER,
    LAUNCHER_IMAGE,
    NAMESPACE,
    NODES,
)
from novacron.localcluster.pki import Authority, KeyPair
from novacron.localcluster.ports import LOOPBACK
from novacron.localcluster.processes import Program

__all__ = ["authority", "program"]

SERVICE_NAMES = (f"{API}.{NAMESPACE}.svc", f"{API}.{NAMESPACE}.svc.cluster.local", *LOCAL_NAMES)
GROUPS = ("system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}")
# The stand-in is at once the kubelets of its nodes and a provisioner of volumes.
NODES_USER = "novacron:kubevirt-nodes"
PYTHON = (sys.executable, "-m")


def authority(plane: ControlPlane) -> Authority:
    """Return who vouches for KubeVirt's programs: the cluster's own authority."""
    return Authority(plane.directory / "pki", AUTHORITY)


def program(
    name: str,
    plane: ControlPlane,
    binaries: Path,
    ports: Mapping[str, int],
    more: Sequence[str],
) -> Program:
    """Return how the named program is started, supervised as a kubelet would.

    ``more`` is what the stand-in is told besides.
    """
    if name == NODES:
        serving = authority(plane).server(HANDLER_NAME, LOCAL_NAMES)
        flags = (*_nodes(plane, serving), f"--port={ports[name]}", *more)
        command = (*PYTHON, "novacron.localcluster.kubevirt.standin", *flags)
        version = code_version() + _digest(serving.certificate)
    else:
        serving = authority(plane).server(f"{name}-server", SERVICE_NAMES)
        flags = (_api if name == API else _controller)(plane, serving, ports)
        command = (str(binaries / name), *flags)
        version = _digest(serving.certificate)
    return Program(name, (*PYTHON, "novacron.localcluster.supervise", *command), version=version)


def _api(plane: ControlPlane, serving: KeyPair, ports: Mapping[str, int]) -> tuple[str, ...]:
    client = authority(plane).client("kubevirt-handler-client", "kubevirt.io:system:client:api")
    return (
        *_common(plane, "kubevirt-apiserver", ports[API]),
        f"--tls-cert-file={serving.certificate}",
        f"--tls-key-file={serving.key}",
        f"--handler-cert-file={client.certificate}",
        f"--handler-key-file={client.key}",
        f"--console-server-port={ports[NODES]}",
    )


def _controller(plane: ControlPlane, serving: KeyPair, ports: Mapping[str, int]) -> tuple[str, ...]:
    return (
        *_common(plane, "kubevirt-controller", ports[CONTROLLER]),
        f"--prom-cert-file={serving.certificate}",
        f"--prom-key-file={serving.key}",
        f"--launcher-image={LAUNCHER_IMAGE}",
        f"--exporter-image={LAUNCHER_IMAGE}",
    )


def _common(plane: ControlPlane, account: str, port: int) -> tuple[str, ...]:
    user = f"system:serviceaccount:{NAMESPACE}:{account}"
    kubeconfig = plane.client_certificate(user, GROUPS, embed=False)
    return (f"--kubeconfig={kubeconfig}", f"--listen={LOOPBACK}", f"--port={port}")


def _nodes(plane: ControlPlane, serving: KeyPair) -> tuple[str, ...]:
    own = plane.client_certificate(NODES_USER, [ADMIN_GROUP], embed=False)
    handler = plane.client_certificate(HANDLER_USER, GROUPS, embed=False)
    return (
        f"--kubeconfig={own}",
        f"--handler-kubeconfig={handler}",
        f"--certificate={serving.certificate}",
        f"--key={serving.key}",
        f"--authority={authority(plane).pair.certificate}",
    )


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
