"""Secrets, maps, tokens and the pod's own fields as files, kept current while the pod runs."""

import asyncio
import base64
import json
import stat
from datetime import UTC, datetime, timedelta

from local_node import container, sleeper
from novacron.localcluster.node.payload import TokenWish
from novacron.localcluster.node.tokens import Tokens
from novacron.runtime.client import Client
from operators import eventually

REPORT = """
import time
seen = None
while True:
    try: now = open('{}').read()
    except OSError as error: now = error.strerror
    if now != seen: print('saw', now, flush=True)
    seen = now
    time.sleep(0.02)
"""


def _mount(name, place="/data", **more):
    return {"volumeMounts": [{"name": name, "mountPath": place, **more}]}


def _secret(value):
    return {"data": {"key": base64.b64encode(value.encode()).decode()}}


def test_a_changed_secret_reaches_the_file(node):
    """The container opens the same path and reads the new value, never none."""
    node.create("secrets", {"metadata": {"name": "door"}, **_secret("one")})
    name = node.pod(
        container(REPORT.format("/data/key"), **_mount("door")),
        volumes=[{"name": "door", "secret": {"secretName": "door"}}],
    )
    node.until_said(name, "saw one")
    for value in ("two", "three"):
        node.patch("door", _secret(value), "secrets")
        node.until_said(name, f"saw {value}")
    assert node.logs(name).split() == ["saw", "one", "saw", "two", "saw", "three"]
    node.delete(name, grace=0)


def test_a_pod_waits_for_what_it_refers_to(node):
    """And says what that is; when it comes, the pod begins by itself."""
    name = node.pod(
        sleeper(**_mount("late")), volumes=[{"name": "late", "configMap": {"name": "late"}}]
    )
    event = node.until_event(name, "FailedMount")
    assert event["message"] == "ConfigMap late does not exist"
    pod = node.get(name)
    assert pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == (
        "ContainerCreating"
    )
    node.create("configmaps", {"metadata": {"name": "late"}, "data": {"a": "1"}})
    node.until_ready(name)


def test_a_variable_that_refers_to_nothing_is_told(node):
    """The message names the Secret and the key; nothing else of it."""
    reference = {"secretKeyRef": {"name": "none", "key": "k"}}
    name = node.pod(sleeper(env=[{"name": "X", "valueFrom": reference}]))
    pod = node.until(
        name,
        lambda pod: (
            (pod["status"].get("containerStatuses") or [{}])[0]
            .get("state", {})
            .get("waiting", {})
            .get("reason")
            == "CreateContainerConfigError"
        ),
    )
    waiting = pod["status"]["containerStatuses"][0]["state"]["waiting"]
    assert waiting["message"] == "Secret none does not exist"


def test_labels_reach_a_file_when_they_change(node):
    """The downward API: what a pod says of itself."""
    items = [{"path": "app", "fieldRef": {"fieldPath": "metadata.labels['app']"}}]
    name = node.pod(
        container(REPORT.format("/data/app"), **_mount("self")),
        volumes=[{"name": "self", "downwardAPI": {"items": items}}],
    )
    node.until_said(name, f"saw {name}")
    node.patch(name, {"metadata": {"labels": {"app": "other"}}}, "pods")
    node.until_said(name, "saw other")
    node.delete(name, grace=0)


def test_what_a_container_makes_of_an_empty_volume_stays(node):
    """Its mode too: the volume is the pod's, and other volumes change meanwhile."""
    script = "import os; os.chmod('/data', 0o700)\n" + REPORT.format("/conf/a")
    name = node.pod(
        container(
            script,
            securityContext={"runAsUser": 0},
            volumeMounts=[
                {"name": "data", "mountPath": "/data"},
                {"name": "conf", "mountPath": "/conf"},
            ],
        ),
        volumes=[
            {"name": "data", "emptyDir": {}},
            {"name": "conf", "configMap": {"name": "conf"}},
        ],
    )
    node.create("configmaps", {"metadata": {"name": "conf"}, "data": {"a": "1"}})
    node.until_said(name, "saw 1")
    node.patch("conf", {"data": {"a": "2"}}, "configmaps")
    node.until_said(name, "saw 2")
    assert stat.S_IMODE((node.record(name).volumes / "data").stat().st_mode) == 0o700
    node.delete(name, grace=0)


def test_part_of_a_volume_and_a_place_of_the_machine(node, tmp_path):
    """`subPath` and `hostPath`; the latter is the machine's own and stays."""
    (tmp_path / "kept").mkdir()
    tmp_path.chmod(0o755)
    (tmp_path / "kept").chmod(0o777)
    node.create("configmaps", {"metadata": {"name": "conf"}, "data": {"a": "1", "b": "2"}})
    name = node.pod(
        container(
            "import os; print(open('/etc/one').read(), os.listdir('/etc/alternatives') != [])\n"
            "open('/kept/file', 'w').write('written')",
            volumeMounts=[
                {"name": "conf", "mountPath": "/etc/one", "subPath": "a"},
                {"name": "machine", "mountPath": "/kept"},
            ],
        ),
        volumes=[
            {"name": "conf", "configMap": {"name": "conf"}},
            {"name": "machine", "hostPath": {"path": str(tmp_path / "kept"), "type": "Directory"}},
        ],
        restartPolicy="Never",
    )
    node.until_phase(name, "Succeeded")
    assert node.logs(name) == "1 True\n"
    node.delete(name)
    node.until_gone(name)
    assert (tmp_path / "kept/file").read_text() == "written"


def test_a_pod_speaks_to_the_api_server_as_its_service_account(node):
    """Token, authority and address are where every client library looks for them."""
    script = (
        "import asyncio\n"
        "from novacron.runtime.client import Client\n"
        "from novacron.runtime.resource import Resource\n"
        "reviews = Resource('authentication.k8s.io', 'v1', 'selfsubjectreviews',"
        " 'SelfSubjectReview', namespaced=False)\n"
        "async def ask():\n"
        "    async with Client.from_kubeconfig() as client:\n"
        "        answer = await client.create(reviews, {'metadata': {}})\n"
        "        print(answer['status']['userInfo']['username'])\n"
        "asyncio.run(ask())"
    )
    name = node.pod(container(script), restartPolicy="Never")
    node.until_phase(name, "Succeeded")
    assert node.logs(name) == f"system:serviceaccount:{node.namespace}:default\n"


async def test_a_token_is_replaced_before_it_is_too_old(node):
    """At four fifths of its life; until then nobody is asked for another."""
    name = node.pod(sleeper())
    pod = node.until_ready(name)
    kubeconfig = node.plane.client_certificate("system:node:novacron-local", ["system:nodes"])
    now = datetime.now(UTC)
    wish = TokenWish("", 600)
    async with Client.from_kubeconfig(kubeconfig) as client:
        tokens = Tokens(client, pod, clock=lambda: now)
        assert await tokens.renew([wish]) == timedelta(seconds=480)
        first = tokens.get(wish)
        now += timedelta(seconds=479)
        await tokens.renew([wish])
        assert tokens.get(wish) == first
        await asyncio.sleep(1.1)  # tokens of the same second are equal
        now += timedelta(seconds=1)
        assert await tokens.renew([wish]) == timedelta(seconds=480)
        assert tokens.get(wish) != first
    claims = json.loads(base64.urlsafe_b64decode(first.split(".")[1] + "=="))
    assert claims["kubernetes.io"]["pod"]["uid"] == pod["metadata"]["uid"]


def test_a_new_token_reaches_the_file(node):
    """An agent that begins asks for a new one: the file changes while the container runs."""
    place = "/var/run/secrets/kubernetes.io/serviceaccount/token"
    script = REPORT.format(place).replace("'saw', now", "'token', hash(now)")
    name = node.pod(container(script))
    node.until_said(name, "token")
    start = node.start_of(name)
    node.kill_agent()
    node.start_agent()
    eventually(lambda: node.logs(name).count("token") == 2, lambda: node.logs(name) + node.log())
    assert node.start_of(name) == start
    node.delete(name, grace=0)


def test_a_node_may_read_only_what_its_pods_refer_to(node):
    """Least privilege: the API server itself refuses the rest."""
    node.create("secrets", {"metadata": {"name": "stranger"}, **_secret("x")})
    node.create("secrets", {"metadata": {"name": "mine"}, **_secret("x")})
    name = node.pod(
        sleeper(**_mount("mine")), volumes=[{"name": "mine", "secret": {"secretName": "mine"}}]
    )
    node.until_ready(name)
    config = node.plane.client_certificate("system:node:novacron-local", ["system:nodes"])
    flags = (f"--kubeconfig={config}", "-o", "name")
    assert node.kubectl("get", "secret", "mine", *flags).returncode == 0
    refused = node.kubectl("get", "secret", "stranger", *flags)
    assert "no relationship found" in refused.stderr
    assert node.kubectl("get", "secrets", *flags).returncode == 1
