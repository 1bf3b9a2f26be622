"""Where the API server is, from kubeconfig files and from inside a pod."""

import base64
import os
import ssl
from pathlib import Path
from typing import Any

import pytest
import yaml

from novacron.localcluster.pki import Authority
from novacron.runtime.client import Client
from novacron.runtime.connection import Connection, NoCluster, from_kubeconfig, from_pod
from novacron.runtime.credentials import Anonymous, ExecPlugin, StaticToken, TokenFile


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test may find the cluster of whoever runs it."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("pki"), "test")


def config(**user: Any) -> dict[str, Any]:
    return {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:8080/"}}],
        "users": [{"name": "u", "user": user}],
    }


def write(path: Path, document: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(document))
    return path


def test_the_current_context_is_taken(tmp_path: Path) -> None:
    """As kubectl does."""
    found = from_kubeconfig(write(tmp_path / "config", config(token="t")))
    assert found == Connection("http://127.0.0.1:8080", None, StaticToken("t"))


def test_another_context_can_be_named(tmp_path: Path) -> None:
    """Its namespace comes with it."""
    document = config()
    document["contexts"].append({"name": "there", "context": {"cluster": "d", "namespace": "red"}})
    document["clusters"].append({"name": "d", "cluster": {"server": "http://d"}})
    found = from_kubeconfig(write(tmp_path / "config", document), "there")
    assert (found.server, found.namespace) == ("http://d", "red")
    assert isinstance(found.credentials, Anonymous)


def test_files_of_the_environment_are_one_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KUBECONFIG=a:b: what the first does not have, the second may; paths are relative to each."""
    first = config()
    del first["users"]
    write(tmp_path / "a" / "config", first)
    second = {"users": [{"name": "u", "user": {"tokenFile": "token"}}], "current-context": "no"}
    write(tmp_path / "b" / "config", second)
    paths = [tmp_path / "a" / "config", tmp_path / "absent", tmp_path / "b" / "config"]
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, paths)))
    found = from_kubeconfig()
    assert isinstance(found.credentials, TokenFile)
    assert found.credentials.path == tmp_path / "b" / "token"


def test_the_home_directory_is_the_last_resort(tmp_path: Path) -> None:
    """Where kubectl keeps it too."""
    write(tmp_path / "home" / ".kube" / "config", config())
    assert from_kubeconfig().server == "http://127.0.0.1:8080"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"current-context": ""}, "has no current context"),
        ({"current-context": "gone"}, "has no context 'gone'; it has: here"),
        ({"clusters": []}, "has no cluster 'c'; it has: none"),
        ({"clusters": None}, "has no cluster 'c'; it has: none"),
        ({"users": []}, "has no user 'u'"),
        ({"clusters": [{"name": "c", "cluster": {}}]}, "has no server"),
        ({"contexts": [{"name": "here", "context": {}}]}, "has no cluster None"),
    ],
)
def test_a_kubeconfig_with_a_hole_is_told(tmp_path: Path, damage: dict, message: str) -> None:
    """One sentence says what is missing, and from which file."""
    path = write(tmp_path / "config", config() | damage)
    with pytest.raises(NoCluster, match=message) as caught:
        from_kubeconfig(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("text", ["{", "- a\n- b\n", "just words", "\x00"])
def test_a_file_that_is_no_kubeconfig_is_told(tmp_path: Path, text: str) -> None:
    """A stack trace helps nobody."""
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(NoCluster, match="is not a kubeconfig"):
        from_kubeconfig(path)


def test_where_it_was_looked_for_is_told(tmp_path: Path) -> None:
    """The user sees which file to make."""
    with pytest.raises(NoCluster, match=r"no kubeconfig at .*\.kube/config"):
        from_kubeconfig()


def test_the_server_is_verified_and_a_client_certificate_loaded(
    tmp_path: Path, authority: Authority
) -> None:
    """Inline data and files, relative to the kubeconfig, mean the same."""
    pair = authority.client("somebody", "somebody", [])
    document = config()
    data = base64.b64encode(authority.pair.certificate.read_bytes()).decode()
    document["clusters"][0]["cluster"] = {
        "server": "https://127.0.0.1:6443",
        "certificate-authority-data": data,
        "tls-server-name": "kubernetes",
    }
    document["users"][0]["user"] = {
        "client-certificate": os.path.relpath(pair.certificate, tmp_path),
        "client-key-data": base64.b64encode(pair.key.read_bytes()).decode(),
    }
    found = from_kubeconfig(write(tmp_path / "config", document))
    assert found.tls is not None
    assert found.tls.verify_mode == ssl.CERT_REQUIRED
    assert found.tls.check_hostname
    assert len(found.tls.get_ca_certs()) == 1
    assert found.server_name == "kubernetes"


def test_only_who_says_so_is_not_verified(tmp_path: Path) -> None:
    """The kubeconfig's owner decides, and it is written there."""
    document = config()
    document["clusters"][0]["cluster"] = {
        "server": "https://127.0.0.1:6443",
        "insecure-skip-tls-verify": True,
    }
    found = from_kubeconfig(write(tmp_path / "config", document))
    assert found.tls is not None
    assert found.tls.verify_mode == ssl.CERT_NONE


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        ({"certificate-authority-data": "bm9wZQ=="}, "are not valid"),
        ({"certificate-authority": "absent.crt"}, "certificate-authority cannot be read"),
    ],
)
def test_certificates_that_cannot_be_used_are_told(
    tmp_path: Path, cluster: dict, message: str
) -> None:
    """Moved files and broken pastes are what users bring."""
    document = config()
    document["clusters"][0]["cluster"] = {"server": "https://127.0.0.1:1"} | cluster
    with pytest.raises(NoCluster, match=message):
        from_kubeconfig(write(tmp_path / "config", document))


def test_a_plugin_is_found_as_kubectl_finds_it(tmp_path: Path) -> None:
    """A bare name in PATH, a relative path beside the kubeconfig."""
    plugin = {
        "command": "bin/login",
        "args": ["token"],
        "env": [{"name": "A", "value": "1"}],
        "apiVersion": "client.authentication.k8s.io/v1",
    }
    found = from_kubeconfig(write(tmp_path / "config", config(exec=plugin))).credentials
    assert isinstance(found, ExecPlugin)
    assert found.command == [str(tmp_path / "bin/login"), "token"]
    assert found.environment == {"A": "1"}
    plugin |= {"command": "login", "args": None, "env": None}
    found = from_kubeconfig(write(tmp_path / "config", config(exec=plugin))).credentials
    assert isinstance(found, ExecPlugin)
    assert found.command == ["login"]


def pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, authority: Authority, host: str) -> Path:
    (tmp_path / "token").write_text("t")
    (tmp_path / "namespace").write_text("novacron-system\n")
    (tmp_path / "ca.crt").write_bytes(authority.pair.certificate.read_bytes())
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    return tmp_path


@pytest.mark.parametrize(("host", "server"), [("10.0.0.1", "10.0.0.1"), ("fd00::1", "[fd00::1]")])
def test_a_pod_is_given_its_connection(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    authority: Authority,
    host: str,
    server: str,
) -> None:
    """Address from the environment, the rest from the mounted service account."""
    found = from_pod(pod(tmp_path, monkeypatch, authority, host))
    assert found is not None
    assert (found.server, found.namespace) == (f"https://{server}:443", "novacron-system")
    assert isinstance(found.credentials, TokenFile)
    assert found.tls is not None
    assert found.tls.verify_mode == ssl.CERT_REQUIRED


def test_outside_of_a_pod_there_is_none(tmp_path: Path) -> None:
    """No environment, or no token."""
    assert from_pod(tmp_path) is None


def test_a_named_kubeconfig_wins_over_the_pod(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A build that runs in a pod and tests against another cluster must not hit its own."""
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.setenv("KUBECONFIG", str(write(tmp_path / "config", config())))
    assert Client.from_kubeconfig().connection.server == "http://127.0.0.1:8080"
