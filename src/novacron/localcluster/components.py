"""How each program of a control plane is started: its flags, and where it says it is ready.

Only command lines; nothing here starts anything.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from novacron.localcluster.layout import API_ADDRESS, API_SERVER_USER, Layout
from novacron.localcluster.pki import Authority, KeyPair, signing_key
from novacron.localcluster.ports import LOOPBACK

__all__ = ["AUTHORITY", "COMPONENTS", "PROBES", "Credentials", "command"]

COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "node")
PROBES = {
    "etcd": "/health",
    "kube-apiserver": "/readyz",
    "kube-controller-manager": "/healthz",
    "kube-scheduler": "/healthz",
    "node": "/healthz",
}
AUTHORITY = "novacron-local"
FRONT_USER = "aggregator"
SERVICE_RANGE = "10.96.0.0/16"
LOCAL_NAMES = (LOOPBACK, "localhost")
API_NAMES = (
    *LOCAL_NAMES,
    API_ADDRESS,
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)


@dataclass(frozen=True, slots=True)
class Credentials:
    """Every pair the programs use.

    etcd has an authority of its own: whoever holds a client certificate of the API server
    must not be able to read the store behind its back. So has the front proxy, as which the
    API server speaks to aggregated ones: whoever it names there is believed.
    """

    authority: KeyPair
    etcd_authority: KeyPair
    front_authority: KeyPair
    front: KeyPair
    etcd: KeyPair
    etcd_client: KeyPair
    servers: Mapping[str, KeyPair]
    node_client: KeyPair
    tokens: KeyPair

    @classmethod
    def prepare(cls, directory: Path) -> "Credentials":
        """Make what is missing or about to expire."""
        cluster = Authority(directory / "pki", AUTHORITY)
        etcd = Authority(directory / "pki-etcd", "novacron-local-etcd")
        front = Authority(directory / "pki-front", "novacron-local-front")
        servers = {"kube-apiserver": cluster.server("kube-apiserver", API_NAMES)}
        for name in ("kube-controller-manager", "kube-scheduler"):
            servers[name] = cluster.server(f"{name}-server", LOCAL_NAMES)
        return cls(
            authority=cluster.pair,
            etcd_authority=etcd.pair,
            front_authority=front.pair,
            front=front.client(FRONT_USER, FRONT_USER),
            # The one member is also its own peer, and so both server and client.
            etcd=etcd.server("etcd", LOCAL_NAMES, client=True),
            etcd_client=etcd.client("kube-apiserver", "kube-apiserver"),
            servers=servers,
            node_client=cluster.client(API_SERVER_USER, API_SERVER_USER),
            tokens=signing_key(directory / "pki" / "service-account"),
        )

    @property
    def version(self) -> str:
        """Return what changes when the programs must be started again to see new credentials."""
        lasting = (self.authority, self.etcd_authority, self.front_authority, self.tokens)
        content = b"".join(pair.certificate.read_bytes() for pair in lasting)
        return hashlib.sha256(content).hexdigest()


def command(
    name: str, layout: Layout, credentials: Credentials, ports: Mapping[str, int], *, fsync: bool
) -> list[str]:
    """Return the flags with which the named program joins this control plane."""
    if name == "etcd":
        return [*_etcd(layout, credentials, ports), *([] if fsync else ["--unsafe-no-fsync"])]
    if name == "kube-apiserver":
        return [*_apiserver(credentials, ports), *_aggregation(credentials)]
    if name == "kube-controller-manager":
        return [*_follower(name, layout, credentials, ports), *_controllers(credentials)]
    return _follower(name, layout, credentials, ports)


def _etcd(layout: Layout, credentials: Credentials, ports: Mapping[str, int]) -> list[str]:
    clients = f"https://{LOOPBACK}:{ports['etcd']}"
    peers = f"https://{LOOPBACK}:{ports['etcd-peer']}"
    authority = credentials.etcd_authority.certificate
    return [
        "--name=local",
        f"--data-dir={layout.etcd_data}",
        f"--listen-client-urls={clients}",
        f"--advertise-client-urls={clients}",
        f"--listen-peer-urls={peers}",
        f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=local={peers}",
        "--client-cert-auth",
        f"--trusted-ca-file={authority}",
        f"--cert-file={credentials.etcd.certificate}",
        f"--key-file={credentials.etcd.key}",
        "--peer-client-cert-auth",
        f"--peer-trusted-ca-file={authority}",
        f"--peer-cert-file={credentials.etcd.certificate}",
        f"--peer-key-file={credentials.etcd.key}",
        "--log-level=warn",
    ]


def _apiserver(credentials: Credentials, ports: Mapping[str, int]) -> list[str]:
    serving = credentials.servers["kube-apiserver"]
    return [
        f"--etcd-servers=https://{LOOPBACK}:{ports['etcd']}",
        f"--etcd-cafile={credentials.etcd_authority.certificate}",
        f"--etcd-certfile={credentials.etcd_client.certificate}",
        f"--etcd-keyfile={credentials.etcd_client.key}",
        f"--bind-address={LOOPBACK}",
        # Without this the server looks for a default route and fails on a machine that has none.
        f"--advertise-address={LOOPBACK}",
        # Nothing inside this cluster reaches the server by its Service; an endpoint may not be
        # a loopback address anyway.
        "--endpoint-reconciler-type=none",
        f"--secure-port={ports['kube-apiserver']}",
        f"--tls-cert-file={serving.certificate}",
        f"--tls-private-key-file={serving.key}",
        f"--client-ca-file={credentials.authority.certificate}",
        # A node may read and write what concerns its own pods, and nothing else.
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        f"--kubelet-client-certificate={credentials.node_client.certificate}",
        f"--kubelet-client-key={credentials.node_client.key}",
        f"--kubelet-certificate-authority={credentials.authority.certificate}",
        "--kubelet-preferred-address-types=InternalIP",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-signing-key-file={credentials.tokens.key}",
        f"--service-account-key-file={credentials.tokens.certificate}",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        "--profiling=false",
    ]


def _aggregation(credentials: Credentials) -> list[str]:
    return [
        # There is no kube-proxy: Services of webhooks lead to the addresses of their pods.
        "--enable-aggregator-routing=true",
        f"--requestheader-client-ca-file={credentials.front_authority.certificate}",
        f"--requestheader-allowed-names={FRONT_USER}",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={credentials.front.certificate}",
        f"--proxy-client-key-file={credentials.front.key}",
    ]


def _follower(
    name: str, layout: Layout, credentials: Credentials, ports: Mapping[str, int]
) -> list[str]:
    kubeconfig = layout.kubeconfig(name)
    serving = credentials.servers[name]
    return [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={ports[name]}",
        f"--tls-cert-file={serving.certificate}",
        f"--tls-private-key-file={serving.key}",
        "--leader-elect=false",
        "--profiling=false",
    ]


def _controllers(credentials: Credentials) -> list[str]:
    return [
        f"--root-ca-file={credentials.authority.certificate}",
        f"--cluster-signing-cert-file={credentials.authority.certificate}",
        f"--cluster-signing-key-file={credentials.authority.key}",
        f"--service-account-private-key-file={credentials.tokens.key}",
        "--use-service-account-credentials=true",
    ]
