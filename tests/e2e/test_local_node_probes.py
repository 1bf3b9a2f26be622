"""Probes decide who is sent requests and who is started again; every pod has its own network."""

import json
import time

import pytest

from local_node import container, is_ready, sleeper
from operators import eventually

# Serves what the file /state/answer says, as its status code; listens on 8080.
SERVER = """
import http.server, os
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        try: code = int(open('/state/answer').read())
        except OSError: code = 200
        self.send_response(code)
        self.end_headers()
        self.wfile.write(os.environ['HOSTNAME'].encode() if 'HOSTNAME' in os.environ else b'')
    def log_message(self, *_): pass
http.server.HTTPServer(('', 8080), Handler).serve_forever()
"""
REUSED_SECONDS = 120
QUICK = {"periodSeconds": 1, "failureThreshold": 1}
HTTP = {"httpGet": {"path": "/", "port": "web"}, **QUICK}
STATE = {
    "volumeMounts": [{"name": "state", "mountPath": "/state"}],
    "ports": [{"name": "web", "containerPort": 8080}],
}
VOLUMES = [{"name": "state", "emptyDir": {}}]


def _answer(node, name, code):
    """Let a pod's server answer with a status code from now on."""
    (node.record(name).volumes / "state/answer").write_text(str(code))


def _restarts(pod):
    statuses = pod["status"].get("containerStatuses")
    return statuses[0]["restartCount"] if statuses else 0


def test_readiness_decides_who_is_an_endpoint_of_a_service(node):
    """In and out again, while the container runs on."""
    name = node.pod(container(SERVER, readinessProbe=HTTP, **STATE), volumes=VOLUMES)
    service = {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8080}]}
    node.create("services", {"metadata": {"name": "web"}, "spec": service})
    address = node.until_ready(name)["status"]["podIP"]

    def endpoints():
        slices = node.kubectl("get", "endpointslices", "-o", "json").stdout
        listed = [
            endpoint for each in json.loads(slices)["items"] for endpoint in each["endpoints"] or ()
        ]
        return [each["addresses"][0] for each in listed if each["conditions"]["ready"]]

    eventually(lambda: endpoints() == [address], lambda: str(endpoints()))
    _answer(node, name, 500)
    node.until(name, lambda pod: not is_ready(pod))
    eventually(lambda: endpoints() == [], lambda: str(endpoints()))
    eventually(
        lambda: any(
            "statuscode: 500" in each["message"] for each in node.events(name, "Unhealthy")
        ),
        lambda: str(node.events(name, "Unhealthy")),
    )
    _answer(node, name, 204)
    assert _restarts(node.until_ready(name)) == 0
    node.delete(name, grace=0)


def test_liveness_restarts_a_container(node):
    """And the reason is told."""
    name = node.pod(
        container(SERVER, livenessProbe=HTTP, **STATE),
        volumes=VOLUMES,
    )
    node.until_ready(name)
    _answer(node, name, 503)
    node.until_event(name, "Killing")
    _answer(node, name, 200)
    pod = node.until(name, lambda pod: _restarts(pod) == 1 and is_ready(pod))
    assert pod["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 137
    node.delete(name, grace=0)


@pytest.mark.parametrize(
    "probe",
    [
        {"exec": {"command": ["python", "-c", "open('/state/go')"]}},
        {"exec": {"command": ["sh", "-c", "test -e /state/go && test $COLOUR = blue"]}},
    ],
)
def test_a_command_inside_the_container_is_a_probe(node, probe):
    """With the container's files, variables and user."""
    name = node.pod(
        sleeper(
            readinessProbe={**probe, **QUICK, "timeoutSeconds": 5},
            env=[{"name": "COLOUR", "value": "blue"}],
            **STATE,
        ),
        volumes=VOLUMES,
    )
    node.until_event(name, "Unhealthy")
    assert not is_ready(node.get(name))
    (node.record(name).volumes / "state/go").touch()
    node.until_ready(name)


def test_a_command_that_hangs_is_a_bad_answer(node):
    """And it is not left behind."""
    name = node.pod(
        sleeper(readinessProbe={"exec": {"command": ["sleep", "1234567"]}, **QUICK}),
    )
    assert "no answer in 1 s" in node.until_event(name, "Unhealthy")["message"]
    start = node.start_of(name)
    node.delete(name)
    node.until_gone(name)
    assert not start.process.alive()


def test_the_others_wait_for_startup(node):
    """A slow starter is not killed for being slow."""
    script = "import time; time.sleep(2)\n" + SERVER
    name = node.pod(
        container(
            script,
            startupProbe={"tcpSocket": {"port": 8080}, "periodSeconds": 1, "failureThreshold": 30},
            livenessProbe=HTTP,
            **STATE,
        ),
        volumes=VOLUMES,
    )
    pod = node.until_phase(name, "Running")
    assert not pod["status"]["containerStatuses"][0]["started"]
    pod = node.until_ready(name)
    assert pod["status"]["containerStatuses"][0]["started"]
    assert _restarts(pod) == 0
    node.delete(name, grace=0)


def test_a_container_that_never_starts_up_is_started_again(node):
    """Startup has its own patience, and it ends."""
    name = node.pod(
        sleeper(startupProbe={"tcpSocket": {"port": 9}, **QUICK}),
    )
    node.until(name, lambda pod: _restarts(pod) >= 1)


def test_pods_with_the_same_port_live_side_by_side(node):
    """Each has an address of its own, which the machine and the others reach."""
    names = [node.pod(container(SERVER, **STATE), volumes=VOLUMES) for _ in range(3)]
    addresses = [node.until_ready(name)["status"]["podIP"] for name in names]
    assert len(set(addresses)) == 3
    script = (
        "import sys, time, urllib.request\n"
        "for address in sys.argv[1:]:\n"
        "    for _ in range(50):\n"
        "        try: print(urllib.request.urlopen(f'http://{address}:8080', timeout=1).status)\n"
        "        except OSError: time.sleep(0.1)\n"
        "        else: break"
    )
    reader = node.pod(container(script, args=addresses), restartPolicy="Never")
    node.until_phase(reader, "Succeeded")
    assert node.logs(reader) == "200\n200\n200\n"
    for name in names:
        node.delete(name, grace=0)


def test_a_pod_can_share_the_machines_network(node):
    """For whoever must reach the world; its API server is then the machine's own."""
    script = "import os, socket; print(sorted(n for _, n in socket.if_nameindex()))"
    own = node.pod(container(script), restartPolicy="Never")
    shared = node.pod(container(script), restartPolicy="Never", hostNetwork=True)
    node.until_phase(own, "Succeeded")
    pod = node.until_phase(shared, "Succeeded")
    assert "eth0" in node.logs(own)
    assert node.logs(own).count(",") == 1
    assert "nova" in node.logs(shared)
    assert pod["status"]["podIP"] == pod["status"]["hostIP"]


def test_addresses_are_used_again(node):
    """Pods come and go; 254 of them must not be all there ever are."""
    given: set[str] = set()
    deadline = time.monotonic() + REUSED_SECONDS
    while time.monotonic() < deadline:
        name = node.pod(sleeper())
        address = node.until_ready(name)["status"]["podIP"]
        node.delete(name)
        node.until_gone(name)
        if address in given:
            return
        given.add(address)
        time.sleep(0.2)  # those of pods that were just deleted take a moment to come back
    pytest.fail(f"none of {sorted(given)} was given again")
