"""`kubectl logs` works as with any node; what this node cannot do it says."""

import http.client
import ssl
import subprocess
from pathlib import Path

import pytest

from local_node import container, sleeper
from novacron.localcluster.layout import API_SERVER_USER
from operators import eventually

COUNT = """
import sys, time
for number in range({}):
    print('line', number, flush=True)
    time.sleep({})
print('an error', file=sys.stderr, flush=True)
"""


def test_output_and_errors_are_shown(node):
    """All of it, the last lines, and with moments."""
    name = node.pod(container(COUNT.format(3, 0)), restartPolicy="Never")
    node.until_phase(name, "Succeeded")
    assert node.logs(name) == "line 0\nline 1\nline 2\nan error\n"
    assert node.logs(name, "--tail=1") == "an error\n"
    assert node.logs(name, "--limit-bytes=6") == "line 0"
    [stamped, *_] = node.logs(name, "--timestamps").splitlines()
    assert stamped.startswith("20")
    assert stamped.endswith("Z line 0")


def test_logs_are_followed_until_the_end(node):
    """Lines come as they are written, and the command ends with the container."""
    name = node.pod(container(COUNT.format(5, 0.3)), restartPolicy="Never")
    node.until_said(name, "line 0")
    program = [node.plane.binaries / "kubectl", "--kubeconfig", node.plane.kubeconfig]
    following = subprocess.Popen(
        [*program, "-n", node.namespace, "logs", "-f", name], stdout=subprocess.PIPE, text=True
    )
    assert following.stdout is not None
    assert following.stdout.readline() == "line 0\n"
    assert node.get(name)["status"]["phase"] == "Running"
    assert following.stdout.read() == "line 1\nline 2\nline 3\nline 4\nan error\n"
    assert following.wait(10) == 0
    following.stdout.close()


def test_the_log_of_the_run_before_is_kept(node):
    """Why it crashed is in there."""
    script = (
        "import os, time\n"
        "first = not os.path.exists('/data/been')\n"
        "open('/data/been', 'w')\n"
        "print('first' if first else 'second', flush=True)\n"
        "time.sleep(0 if first else 600)"
    )
    name = node.pod(
        container(script, volumeMounts=[{"name": "data", "mountPath": "/data"}]),
        volumes=[{"name": "data", "emptyDir": {}}],
    )
    node.until_said(name, "second")
    assert node.logs(name, "--previous") == "first\n"
    node.delete(name, grace=0)


def test_a_log_that_is_not_there_is_one_sentence(node):
    """For a container that has not begun, and for a run that never was."""
    waiting = node.pod({"name": "web", "image": "nginx"})
    node.until_event(waiting, "NotOurImage")
    said = node.kubectl("logs", waiting)
    assert "is waiting to start" in said.stderr
    running = node.pod(sleeper())
    node.until_ready(running)
    said = node.kubectl("logs", running, "--previous")
    assert "previous terminated container" in said.stderr


def test_a_reader_who_leaves_is_let_go(node):
    """Following a quiet log must not cost anything for ever after."""
    name = node.pod(sleeper())
    node.until_said(name, "here")

    def connections():
        listed = Path(f"/proc/{node.agent().pid}/fd").iterdir()
        return {link for each in listed if (link := _target(each)).startswith("socket:")}

    before = connections()
    program = [node.plane.binaries / "kubectl", "--kubeconfig", node.plane.kubeconfig]
    following = subprocess.Popen(
        [*program, "-n", node.namespace, "logs", "-f", name], stdout=subprocess.PIPE
    )
    assert following.stdout is not None
    with following.stdout:
        following.stdout.readline()
        opened = connections() - before
        following.kill()
        following.wait()
    assert opened
    eventually(lambda: not opened & connections(), lambda: f"{opened} end with their reader")


def _target(entry):
    try:
        return str(entry.readlink())
    except FileNotFoundError:
        return ""  # it was closed this moment


def test_exec_is_refused_with_what_this_node_is(node):
    """Rather than a broken connection."""
    name = node.pod(sleeper())
    node.until_ready(name)
    said = node.kubectl("exec", name, "--", "ls")
    assert said.returncode != 0
    assert "exec is not supported by the development node novacron-local" in said.stderr


def test_only_the_api_server_may_ask(node):
    """Logs can hold anything; a certificate of the cluster alone is not enough."""
    name = node.pod(sleeper())
    node.until_said(name, "here")
    pki = node.plane.directory / "pki"
    path = f"/containerLogs/{node.namespace}/{name}/main"

    def ask(user):
        context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        if user:
            context.load_cert_chain(pki / f"{user}.crt", pki / f"{user}.key")
        port = node.plane.ports.read()["node"]
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=5, context=context)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    with pytest.raises(OSError, match=r"(?i)certificate required|reset|closed"):
        ask(None)
    assert ask("admin") == (403, "only the API server may ask\n")
    assert ask(API_SERVER_USER) == (200, "here\n")
