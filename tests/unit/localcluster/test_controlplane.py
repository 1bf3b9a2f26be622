"""A real control plane: it starts, survives, keeps its address, and lets in only who may."""

import json
import signal
import socket
import ssl
import stat
import subprocess
from urllib.parse import urlsplit

import pytest

from control_plane import ALL
from novacron.localcluster.components import Credentials
from novacron.localcluster.errors import LocalClusterError
from novacron.localcluster.ports import LOOPBACK

MAP = "configmaps"


def test_it_serves_the_version_that_was_built(control_plane):
    """Clients decide by the version what they may ask for."""
    answer = json.loads(control_plane.kubectl("version", "-o", "json"))
    assert answer["serverVersion"]["gitVersion"] == answer["clientVersion"]["gitVersion"]


def test_a_certificate_makes_a_user_with_no_more_rights_than_given(control_plane, namespace):
    """The operator runs as such a user, with its own role."""
    kubeconfig = control_plane.client_certificate("ada", ["engineers"])
    with pytest.raises(LocalClusterError, match="ada"):
        control_plane.kubectl("get", "secrets", f"--kubeconfig={kubeconfig}", "-n", namespace)
    whoami = control_plane.kubectl("auth", "whoami", "-o", "json", f"--kubeconfig={kubeconfig}")
    user = json.loads(whoami)["status"]["userInfo"]
    assert user["username"] == "ada"
    assert "engineers" in user["groups"]


def test_a_role_given_to_that_user_works(control_plane, namespace):
    """RBAC is on and knows certificates."""
    kubeconfig = control_plane.client_certificate("grace")
    inside = ("-n", namespace)
    control_plane.kubectl("create", "role", "reader", "--verb=list", f"--resource={MAP}", *inside)
    control_plane.kubectl(
        "create", "rolebinding", "grace", "--role=reader", "--user=grace", *inside
    )
    control_plane.kubectl("get", MAP, f"--kubeconfig={kubeconfig}", "-n", namespace)


def test_the_store_does_not_let_in_the_clusters_own_users(control_plane):
    """With one authority for both, any user could read every secret behind RBAC's back."""
    credentials = Credentials.prepare(control_plane.directory)
    context = ssl.create_default_context(cafile=str(credentials.etcd_authority.certificate))
    admin = control_plane.directory / "pki" / "admin"
    context.load_cert_chain(admin.with_suffix(".crt"), admin.with_suffix(".key"))
    with pytest.raises(OSError, match=r"(?i)alert|reset|eof"):
        _ask(control_plane.ports.read()["etcd"], context)


def _ask(port, context):
    with (
        socket.create_connection((LOOPBACK, port), timeout=10) as raw,
        context.wrap_socket(raw, server_hostname=LOOPBACK) as channel,
    ):
        channel.sendall(b"GET /health HTTP/1.1\r\nHost: etcd\r\n\r\n")
        # TLS 1.3 tells the client of its refusal with the first answer.
        if not channel.recv(100):
            raise OSError("eof")


def test_kubeconfigs_are_for_the_user_alone(control_plane):
    """They hold the key of the administrator."""
    assert stat.S_IMODE(control_plane.kubeconfig.stat().st_mode) == 0o600


def test_a_crash_costs_neither_data_nor_address(new_control_plane):
    """Everything is killed at once, as by a power cut; the next start repairs."""
    plane = new_control_plane()
    plane.kubectl("create", "configmap", "kept")
    url = plane.url
    for name in ("etcd", "kube-apiserver"):
        plane.kill(name)
    assert plane.start() == ["etcd", "kube-apiserver"]
    assert plane.url == url
    assert "kept" in plane.kubectl("get", MAP)
    assert plane.start() == []


def test_a_restart_keeps_the_other_components(new_control_plane):
    """Tests of the runtime restart the API server in the middle of their work."""
    plane = new_control_plane()
    etcd, server = plane.running("etcd"), plane.running("kube-apiserver")
    plane.restart("kube-apiserver")
    assert plane.running("etcd") == etcd
    assert plane.running("kube-apiserver") not in (None, server)
    assert plane.ready()
    # Being alive is not the same as serving.
    plane.running("kube-apiserver").signal(signal.SIGSTOP)
    assert not plane.ready()


def test_a_port_taken_meanwhile_is_replaced(new_control_plane):
    """Whoever took it keeps it; the kubeconfig follows."""
    plane = new_control_plane()
    plane.stop()
    port = urlsplit(plane.url).port
    with socket.create_server((LOOPBACK, port)):
        plane.start()
        assert urlsplit(plane.url).port != port
        assert "default" in plane.kubectl("get", "namespaces")


def test_lost_ports_and_authority_are_made_anew(new_control_plane):
    """Half-written state must not need a person who knows which file to delete."""
    plane = new_control_plane()
    plane.kubectl("create", "configmap", "kept")
    plane.ports.path.write_text("{")
    (plane.directory / "pki" / "ca.key").write_text("torn")
    plane.start()
    assert "kept" in plane.kubectl("get", MAP)


def test_a_start_that_fails_leaves_nothing_running(new_control_plane, tmp_path):
    """One wrong flag: a sentence with the log's end, and no process left behind."""
    with pytest.raises(LocalClusterError, match=r"kube-apiserver stopped[\s\S]*no-such-flag"):
        new_control_plane(extra_flags={"kube-apiserver": ["--no-such-flag"]})
    left = subprocess.run(
        ["pgrep", "-f", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert left.stdout == ""


def test_all_four_components_work_together(new_control_plane):
    """The controller manager empties a deleted namespace, which nobody else does."""
    plane = new_control_plane(components=ALL)
    plane.kubectl("create", "namespace", "short-lived")
    plane.kubectl("create", "configmap", "inside", "-n", "short-lived")
    plane.kubectl("delete", "namespace", "short-lived", "--timeout=60s")
    for name in ALL:
        assert plane.ready(name)
    assert plane.stop() == [*reversed(ALL)]
    assert not any(plane.running(name) for name in ALL)
