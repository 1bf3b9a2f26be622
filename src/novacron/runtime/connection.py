"""Where the API server is and how to reach it: from a kubeconfig file or from inside a pod.

Written by hand because the libraries that do it cost 0.25 s and more of import, and the
command line starts in less (docs/decisions).
"""

import base64
import os
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from novacron.runtime.credentials import (
    Anonymous,
    Credentials,
    ExecPlugin,
    StaticToken,
    TokenFile,
)

__all__ = ["Connection", "NoCluster", "from_kubeconfig", "from_pod", "from_text"]

# Fields of a kubeconfig that name files and programs of the machine it is used on.
NAMING_OURS = frozenset(
    {
        "auth-provider",
        "certificate-authority",
        "client-certificate",
        "client-key",
        "exec",
        "tokenFile",
    }
)
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class NoCluster(Exception):
    """There is nothing that says where a cluster is; the message says what was looked at."""


@dataclass(frozen=True, slots=True)
class Connection:
    """One API server and one identity."""

    server: str
    tls: ssl.SSLContext | None
    credentials: Credentials
    namespace: str = "default"
    server_name: str | None = None


def from_pod(mounted: Path = SERVICE_ACCOUNT) -> Connection | None:
    """Return the connection a pod is given, or None outside of one."""
    host, port = (
        os.environ.get("KUBERNETES_SERVICE_HOST"),
        os.environ.get("KUBERNETES_SERVICE_PORT"),
    )
    token = mounted / "token"
    if not host or not port or not token.exists():
        return None
    tls = ssl.create_default_context(cafile=str(mounted / "ca.crt"))
    address = f"[{host}]" if ":" in host else host
    namespace = (mounted / "namespace").read_text().strip()
    return Connection(f"https://{address}:{port}", tls, TokenFile(token), namespace)


def from_kubeconfig(path: Path | None = None, context: str | None = None) -> Connection:
    """Return the connection of a context; KUBECONFIG and ~/.kube/config when no path is given."""
    import yaml  # noqa: PLC0415 - 50 ms that a pod never needs

    candidates = _candidates(path)
    documents: dict[Path, dict[str, Any]] = {}
    for candidate in candidates:
        if candidate.is_file():
            try:
                documents[candidate] = dict(yaml.safe_load(candidate.read_text()) or {})
            except (yaml.YAMLError, ValueError, TypeError) as error:
                raise NoCluster(f"{candidate} is not a kubeconfig: {error}") from error
    if not documents:
        raise NoCluster(f"no kubeconfig at {', '.join(map(str, candidates))}")
    return _from_documents(documents, context)


def from_text(text: str) -> Connection:
    """Return the connection of a kubeconfig that somebody else wrote.

    It may hold certificates and tokens. It may not name files or programs: they would be ours.
    """
    import yaml  # noqa: PLC0415 - 50 ms that a pod never needs

    try:
        document = dict(yaml.safe_load(text) or {})
        _require_self_contained(document)
        return _from_documents({Path("the kubeconfig"): document}, None)
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, KeyError):
        # What is wrong with it may quote a secret.
        raise NoCluster("it is not a kubeconfig") from None


def _require_self_contained(document: dict[str, Any]) -> None:
    entries = [entry.get("user") or {} for entry in document.get("users") or ()]
    entries += [entry.get("cluster") or {} for entry in document.get("clusters") or ()]
    for found in sorted(NAMING_OURS & {field for entry in entries for field in entry}):
        raise NoCluster(
            f"its {found} names something of the machine it came from: put certificates and tokens "
            "into it instead (kubectl config view --flatten --raw)"
        )


def _candidates(path: Path | None) -> list[Path]:
    if path is not None:
        return [path]
    named = [Path(part) for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    return named or [Path.home() / ".kube" / "config"]


def _from_documents(documents: dict[Path, dict[str, Any]], context: str | None) -> Connection:
    # As kubectl does it: files are one document, the first that names a thing wins.
    names = (document.get("current-context") for document in documents.values())
    name = context or next(filter(None, names), None)
    if not name:
        raise NoCluster(f"{_all(documents)} has no current context; name one with --context")
    chosen, base = _named(documents, "context", name)
    cluster, cluster_base = _named(documents, "cluster", chosen.get("cluster"))
    user: dict[str, Any] = {}
    if chosen.get("user"):
        user, base = _named(documents, "user", chosen["user"])
    if "server" not in cluster:
        raise NoCluster(f"cluster {chosen['cluster']!r} in {_all(documents)} has no server")
    try:
        tls = _tls(cluster, cluster_base, user, base)
    except (ssl.SSLError, ValueError) as error:
        raise NoCluster(f"the certificates of context {name!r} are not valid: {error}") from error
    return Connection(
        server=cluster["server"].rstrip("/"),
        tls=tls,
        credentials=_credentials(user, base),
        namespace=chosen.get("namespace") or "default",
        server_name=cluster.get("tls-server-name"),
    )


def _named(
    documents: dict[Path, dict[str, Any]], kind: str, name: str | None
) -> tuple[dict[str, Any], Path]:
    known = []
    for path, document in documents.items():
        for entry in document.get(f"{kind}s") or ():
            if entry.get("name") == name:
                return entry.get(kind) or {}, path.parent
            known.append(str(entry.get("name")))
    raise NoCluster(
        f"{_all(documents)} has no {kind} {name!r}; it has: {', '.join(known) or 'none'}"
    )


def _all(documents: dict[Path, dict[str, Any]]) -> str:
    return ", ".join(map(str, documents))


def _tls(
    cluster: dict[str, Any], cluster_base: Path, user: dict[str, Any], user_base: Path
) -> ssl.SSLContext | None:
    if cluster["server"].startswith("http://"):
        return None
    authority = _content(cluster, "certificate-authority", cluster_base)
    tls = ssl.create_default_context(cadata=authority.decode() if authority else None)
    if cluster.get("insecure-skip-tls-verify"):
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
    certificate = _content(user, "client-certificate", user_base)
    private_key = _content(user, "client-key", user_base)
    if certificate and private_key:
        _load_pair(tls, certificate, private_key)
    return tls


def _load_pair(tls: ssl.SSLContext, certificate: bytes, private_key: bytes) -> None:
    # The ssl module reads key pairs from files only; this one is ours alone and gone at once.
    with tempfile.NamedTemporaryFile(prefix="novacron-", suffix=".pem") as pair:
        pair.write(certificate + b"\n" + private_key)
        pair.flush()
        tls.load_cert_chain(pair.name)


def _content(section: dict[str, Any], field: str, base: Path) -> bytes | None:
    if data := section.get(f"{field}-data"):
        return base64.b64decode(data)
    file = section.get(field)
    try:
        return Path(base, file).read_bytes() if file else None
    except OSError as error:
        raise NoCluster(f"{field} cannot be read: {error}") from error


def _credentials(user: dict[str, Any], base: Path) -> Credentials:
    if file := user.get("tokenFile"):
        return TokenFile(base / file)
    if token := user.get("token"):
        return StaticToken(token)
    if plugin := user.get("exec"):
        program = plugin["command"]
        # A bare name is looked up in PATH, a relative path beside the kubeconfig.
        command = [str(base / program) if "/" in program else program, *(plugin.get("args") or ())]
        environment = {entry["name"]: entry["value"] for entry in plugin.get("env") or ()}
        return ExecPlugin(command, environment, plugin["apiVersion"])
    return Anonymous()
