"""Pods of our own image run as processes: what they are given, how they end, what they leave."""

import base64
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from local_node import IMAGE, PATIENT, container, processes_with, sleeper
from novacron.localcluster.node.registration import NODES
from operators import eventually

SHOW = """
import json, os, socket, sys
print(json.dumps({
    'arguments': sys.argv[1:], 'variables': dict(os.environ), 'directory': os.getcwd(),
    'user': [os.getuid(), os.getgid(), sorted(os.getgroups())], 'pid': os.getpid(),
    'host': socket.gethostname(),
}))
"""


def _container(pod, name="main"):
    status = pod["status"]
    every = [*(status.get("initContainerStatuses") or ()), *status["containerStatuses"]]
    return next(each for each in every if each["name"] == name)


def _job(script, **spec):
    template = {"spec": {"restartPolicy": "Never", "containers": [container(script)]}}
    return {"metadata": {"name": "work"}, "spec": {"template": template, **spec}}


def test_the_node_says_what_it_is(node):
    """Nobody may take it for a node that runs containers."""
    found = node.api.call("GET", NODES.path(None, "novacron-local"))
    assert found["metadata"]["labels"]["novacron.io/development-node"] == "true"
    assert "development tool" in found["metadata"]["annotations"]["novacron.io/about"]
    [ready] = found["status"]["conditions"]
    assert ready["status"] == "True"
    assert "as local processes without containers" in ready["message"]
    assert found["status"]["capacity"]["cpu"] == str(os.cpu_count())


def test_another_image_stays_pending_and_says_why(node):
    """In the status, and once as an event."""
    name = node.pod({"name": "web", "image": "nginx:1.27"})
    pod = node.until(name, lambda pod: pod["status"].get("containerStatuses"))
    waiting = _container(pod, "web")["state"]["waiting"]
    assert pod["status"]["phase"] == "Pending"
    assert waiting["reason"] == "NotOurImage"
    assert "runs only pods of novacron/novacron" in waiting["message"]
    node.until_event(name, "NotOurImage")
    node.kill_agent()
    node.start_agent()
    assert node.until_event(name, "NotOurImage").get("count", 1) == 1
    node.delete(name)
    node.until_gone(name)


def test_a_container_gets_what_its_pod_says(node):
    """Arguments, variables, directory, user, name: all as in a container."""
    node.create("configmaps", {"metadata": {"name": "conf"}, "data": {"COLOUR": "blue"}})
    name = node.pod(
        container(
            SHOW,
            args=["--colour=$(COLOUR)", "$$(COLOUR)"],
            envFrom=[{"configMapRef": {"name": "conf"}}],
            env=[{"name": "ME", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
            workingDir="/some/where",
        ),
        restartPolicy="Never",
        securityContext={"runAsUser": 1234, "runAsGroup": 2345, "fsGroup": 3456},
    )
    pod = node.until_phase(name, "Succeeded")
    shown = json.loads(node.logs(name))
    assert shown["arguments"] == ["--colour=blue", "$(COLOUR)"]
    assert shown["variables"]["ME"] == pod["status"]["podIP"]
    assert shown["variables"]["KUBERNETES_SERVICE_HOST"] == "10.96.0.1"
    assert shown["directory"] == "/some/where"
    assert shown["user"] == [1234, 2345, [3456]]
    assert (shown["pid"], shown["host"]) == (1, name)
    assert not [variable for variable in shown["variables"] if "NOVACRON" in variable]


def test_a_program_that_is_not_there_is_told(node):
    """With the reason that container runtimes give."""
    name = node.pod(
        {"name": "main", "image": IMAGE, "command": ["/no/such"]}, restartPolicy="Never"
    )
    pod = node.until_phase(name, "Failed")
    ended = _container(pod)["state"]["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("StartError", 128)
    assert "/no/such: No such file" in ended["message"]


def test_our_own_program_is_the_images_entry_point(node):
    """A pod that names no command runs `/manager`."""
    name = node.pod({"name": "main", "image": IMAGE, "args": ["--help"]}, restartPolicy="Never")
    node.until_phase(name, "Succeeded")
    assert "Usage: manager" in node.logs(name)


def test_init_containers_run_one_after_the_other_before_all_else(node):
    """What they leave in a volume is there when the others begin."""
    mounts = [{"name": "shared", "mountPath": "/shared"}]
    add = "open('/shared/order', 'a').write('{} ')"
    name = node.pod(
        container("print(open('/shared/order').read())", volumeMounts=mounts),
        initContainers=[
            container(add.format("first"), "one", volumeMounts=mounts),
            container(add.format("second"), "two", volumeMounts=mounts),
        ],
        volumes=[{"name": "shared", "emptyDir": {}}],
        restartPolicy="Never",
    )
    node.until_phase(name, "Succeeded")
    assert node.logs(name) == "first second \n"


def test_a_failed_init_container_fails_a_pod_that_is_never_restarted(node):
    """The others never begin."""
    name = node.pod(
        container("print('no')"),
        initContainers=[container("raise SystemExit(3)", "one")],
        restartPolicy="Never",
    )
    pod = node.until_phase(name, "Failed")
    assert _container(pod, "one")["state"]["terminated"]["exitCode"] == 3
    assert "waiting" in _container(pod)["state"]


def test_a_job_completes(node):
    """The Job controller decides by what we tell of its pods."""
    node.create("jobs", _job("print('done')"))
    node.until("work", lambda job: job["status"].get("succeeded") == 1, "jobs")


def test_a_job_fails(node):
    """With the exit code in the status, and last words if there were any."""
    script = "open('/dev/termination-log', 'w').write('no luck'); raise SystemExit(7)"
    node.create("jobs", _job(script, backoffLimit=0))
    node.until("work", lambda job: job["status"].get("failed") == 1, "jobs")
    [pod] = node.api.call("GET", f"/api/v1/namespaces/{node.namespace}/pods")["items"]
    ended = _container(pod)["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"], ended["message"]) == (7, "Error", "no luck")


def test_a_container_that_ends_again_and_again_backs_off(node):
    """The first restart is at once; then the status says how long it waits."""
    name = node.pod(container("print('run'); raise SystemExit(1)"))
    pod = node.until(
        name,
        lambda pod: (
            _container(pod)["state"].get("waiting", {}).get("reason") == "CrashLoopBackOff"
            if pod["status"].get("containerStatuses")
            else False
        ),
    )
    found = _container(pod)
    assert found["restartCount"] == 1
    assert "back-off 10s" in found["state"]["waiting"]["message"]
    assert found["lastState"]["terminated"]["exitCode"] == 1
    assert pod["status"]["phase"] == "Running"
    node.until_event(name, "BackOff")
    node.delete(name)
    node.until_gone(name)


def test_deletion_asks_first_and_then_insists(node):
    """A container may finish within its grace; one that does not listen is ended after it."""
    goodbye = PATIENT.replace("lambda *_: sys.exit(0)", "lambda *_: (time.sleep(1), sys.exit(0))")
    polite = node.pod(container(goodbye))
    deaf = node.pod(container(PATIENT.replace("lambda *_: sys.exit(0)", "signal.SIG_IGN")))
    for name in (polite, deaf):
        node.until_ready(name)
        node.until_said(name, "here")
    starts = {name: node.start_of(name) for name in (polite, deaf)}
    begun = time.monotonic()
    node.delete(polite)
    node.until_gone(polite)
    assert 0.9 < time.monotonic() - begun < 10
    begun = time.monotonic()
    node.delete(deaf, grace=2)
    node.until_gone(deaf)
    assert 1.9 < time.monotonic() - begun < 10
    for start in starts.values():
        assert not start.process.alive()
        assert not start.keeper.alive()


def test_nothing_that_a_container_started_outlives_it(node):
    """Also what it put into the background and what left its session."""
    marker = f"left-{node.namespace}"
    script = (
        "import subprocess, time\n"
        f"subprocess.Popen(['sleep', '1000'], env={{'MARK': '{marker}'}}, start_new_session=True)\n"
        "time.sleep(1)"
    )
    name = node.pod(container(script), restartPolicy="Never")
    eventually(lambda: bool(processes_with(f"MARK={marker}")), lambda: "it runs")
    node.until_phase(name, "Succeeded")
    assert processes_with(f"MARK={marker}") == []


def test_a_pod_that_is_done_with_is_forgotten(node):
    """Its files and its address are free when it is deleted."""
    name = node.pod(sleeper())
    node.until_ready(name)
    place = node.record(name).directory
    node.delete(name)
    node.until_gone(name)
    eventually(lambda: not place.exists(), lambda: f"{place} is gone")


def test_a_pod_that_was_removed_by_force_is_ended(node):
    """The API server has forgotten it, and so nobody would ask again."""
    name = node.pod(sleeper())
    node.until_ready(name)
    start = node.start_of(name)
    node.delete(name, grace=0)
    eventually(lambda: not start.keeper.alive(), lambda: "its process ended")


@pytest.fixture
def outside():
    """A directory of the machine that no pod was given."""
    with tempfile.TemporaryDirectory(prefix="novacron-outside-", dir="/") as directory:
        yield directory


def test_the_root_is_the_containers_own(node, outside):
    """It can be written unless it says otherwise; nothing of it reaches the machine."""
    script = (
        "import os\n"
        "for place in ('/etc/mine', '/tmp/mine', '/data/mine'):\n"
        "    try: print(place, open(place, 'w').write('x'))\n"
        "    except OSError as error: print(place, error.strerror)\n"
        f"print(sorted(os.listdir('/home')), os.path.exists({str(outside)!r}))"
    )
    volumes = {"volumes": [{"name": "data", "emptyDir": {}}], "restartPolicy": "Never"}
    mounts = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    root = {"securityContext": {"runAsUser": 0}}
    frozen = {"securityContext": {"readOnlyRootFilesystem": True}}
    writable = node.pod(container(script, **mounts, **root), **volumes)
    read_only = node.pod(container(script, **mounts, **frozen), **volumes)
    node.until_phase(writable, "Succeeded")
    node.until_phase(read_only, "Succeeded")
    assert node.logs(writable) == "/etc/mine 1\n/tmp/mine 1\n/data/mine 1\n['nonroot'] False\n"
    assert node.logs(read_only).splitlines()[:3] == [
        "/etc/mine Read-only file system",
        "/tmp/mine Read-only file system",
        "/data/mine 1",
    ]
    assert not Path("/etc/mine").exists()


def test_root_in_a_container_is_not_root_of_the_machine(node):
    """It cannot mount, and nobody's keys are in sight."""
    script = (
        "import ctypes, os\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "print(libc.mount(b'none', b'/home', b'tmpfs', 0, None), ctypes.get_errno())\n"
        "try: open('/proc/sys/kernel/panic', 'w')\n"
        "except OSError as error: print(error.strerror)"
    )
    name = node.pod(container(script, securityContext={"runAsUser": 0}), restartPolicy="Never")
    node.until_phase(name, "Succeeded")
    assert node.logs(name) == "-1 1\nRead-only file system\n"


def test_no_secret_is_in_an_argument_or_a_log(node):
    """A variable reaches the container and nobody who looks at the list of processes."""
    secret = base64.b64encode(b"very-secret-value").decode()
    node.create("secrets", {"metadata": {"name": "door"}, "data": {"KEY": secret}})
    reference = {"secretKeyRef": {"name": "door", "key": "KEY"}}
    name = node.pod(
        sleeper(env=[{"name": "KEY", "valueFrom": reference}]),
    )
    node.until_ready(name)
    start = node.start_of(name)
    environment = subprocess.run(
        ["cat", f"/proc/{start.process.pid}/environ"], capture_output=True, check=True
    ).stdout
    assert b"KEY=very-secret-value" in environment
    commands = subprocess.run(["ps", "-eo", "args"], capture_output=True, check=True).stdout
    assert b"very-secret-value" not in commands
    log = node.plane.processes.log("node").read_text()
    assert "very-secret-value" not in log


def test_a_quiet_pod_is_not_written(node):
    """A status that is written again and again would cost everybody who watches."""
    name = node.pod(sleeper())
    before = node.until_ready(name)["metadata"]["resourceVersion"]
    time.sleep(2)
    assert node.get(name)["metadata"]["resourceVersion"] == before
