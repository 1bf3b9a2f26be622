"""What the chart renders to: the specification's deployment, made safe."""

import json
from typing import Any

import pytest
import yaml

from chart.conftest import Render
from helm import REPOSITORY, Helm
from novacron.app.command import run as operator

Object = dict[str, Any]


def one(manifests: list[Object], kind: str) -> Object:
    """Return the only object of a kind."""
    [found] = [each for each in manifests if each["kind"] == kind]
    return found


def pod(manifests: list[Object]) -> Object:
    """Return the operator's pod."""
    spec: Object = one(manifests, "Deployment")["spec"]["template"]["spec"]
    return spec


def test_the_deployment_is_the_specified_one(render: Render) -> None:
    """Names, flags, probes and resources of the specification; people have written them down."""
    deployment = one(render(), "Deployment")
    assert deployment["metadata"]["name"] == "novacron-operator"
    assert deployment["spec"]["replicas"] == 3
    assert deployment["spec"]["selector"] == {"matchLabels": {"app": "novacron-operator"}}
    [container] = pod(render())["containers"]
    assert pod(render())["serviceAccountName"] == "novacron-operator"
    assert container["command"] == ["/manager"]
    assert container["args"][:3] == [
        "--leader-elect",
        "--metrics-bind-addr=:8080",
        "--health-probe-bind-addr=:8081",
    ]
    assert container["env"] == [{"name": "WATCH_NAMESPACE", "value": ""}]
    assert container["resources"] == {
        "limits": {"cpu": "500m", "memory": "512Mi"},
        "requests": {"cpu": "100m", "memory": "128Mi"},
    }
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"metrics": 8080, "probes": 8081, "webhooks": 9443}
    assert container["livenessProbe"] == {
        "httpGet": {"path": "/healthz", "port": "probes"},
        "initialDelaySeconds": 15,
        "periodSeconds": 20,
    }
    assert container["readinessProbe"] == {
        "httpGet": {"path": "/readyz", "port": "probes"},
        "initialDelaySeconds": 5,
        "periodSeconds": 10,
    }


def test_replicas_keep_apart_if_they_can_and_one_at_a_time_is_away(render: Render) -> None:
    """On a cluster of one node all three still run."""
    spread = pod(render())["topologySpreadConstraints"]
    assert {each["topologyKey"] for each in spread} == {
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
    }
    assert {each["whenUnsatisfiable"] for each in spread} == {"ScheduleAnyway"}
    assert one(render(), "PodDisruptionBudget")["spec"]["maxUnavailable"] == 1


def test_only_places_that_go_with_the_pod_can_be_written(render: Render) -> None:
    """A key that is in a file for a moment is in memory then."""
    [container] = pod(render())["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    mounts = {each["mountPath"]: each["name"] for each in container["volumeMounts"]}
    volumes = {each["name"]: each["emptyDir"] for each in pod(render())["volumes"]}
    assert volumes[mounts["/tmp"]]["medium"] == "Memory"
    assert volumes[mounts["/var/lib/novacron"]] == {}


def test_simulated_hosts_can_share_a_world_or_be_left_out(render: Render) -> None:
    """Several replicas at work on the same simulated hosts have to see the same machines."""
    path = "simulation.volume.hostPath.path=/srv/novacron"
    shared = pod(render("shards=3", path))
    [volume] = [each for each in shared["volumes"] if each["name"] == "simulation"]
    assert volume == {"name": "simulation", "hostPath": {"path": "/srv/novacron"}}
    without = pod(render("shards=3", "simulation.enabled=false"))
    assert [each["name"] for each in without["volumes"]] == ["keys", "scratch"]


def test_the_network_policy_lets_in_and_out_what_is_needed(render: Render) -> None:
    """Webhooks from anywhere, because API servers are no pods; out to API server and hosts."""
    policy = one(render(), "NetworkPolicy")["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert policy["ingress"][0] == {"ports": [{"port": "webhooks"}, {"port": "probes"}]}
    assert policy["ingress"][1] == {"ports": [{"port": "metrics"}]}
    out = {port["port"] for rule in policy["egress"] for port in rule["ports"]}
    assert out == {53, 443, 6443, 22, 80, 8006, 16509, 16514}
    assert "NetworkPolicy" not in {each["kind"] for each in render("networkPolicy.enabled=false")}


def test_metrics_can_be_kept_for_some(render: Render) -> None:
    """They tell names of machines."""
    peer = "networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.team=monitoring"
    ingress = one(render(peer), "NetworkPolicy")["spec"]["ingress"]
    peers = [{"namespaceSelector": {"matchLabels": {"team": "monitoring"}}}]
    assert ingress[1] == {"ports": [{"port": "metrics"}], "from": peers}


def test_a_service_monitor_is_there_when_asked_for(render: Render) -> None:
    """Its kind is not in every cluster. It has to find the Service by labels."""
    assert "ServiceMonitor" not in {each["kind"] for each in render()}
    manifests = render("serviceMonitor.enabled=true", "serviceMonitor.labels.release=prometheus")
    monitor = one(manifests, "ServiceMonitor")
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    wanted = monitor["spec"]["selector"]["matchLabels"].items()
    [service] = [
        each
        for each in manifests
        if each["kind"] == "Service" and wanted <= each["metadata"].get("labels", {}).items()
    ]
    [endpoint] = monitor["spec"]["endpoints"]
    assert endpoint["port"] in [port["name"] for port in service["spec"]["ports"]]


def test_an_image_can_come_from_elsewhere(render: Render) -> None:
    """The Job runs the same one."""
    values = ("image.repository=mirror/novacron", "image.tag=1.2", "image.pullSecrets[0].name=key")
    manifests = render(*values)
    job = one(manifests, "Job")["spec"]["template"]["spec"]
    for spec in (pod(manifests), job):
        assert spec["containers"][0]["image"] == "mirror/novacron:1.2"
        assert spec["imagePullSecrets"] == [{"name": "key"}]


def test_every_setting_reaches_the_operator(render: Render) -> None:
    """A flag that the operator does not know would keep it from starting."""
    values = ("shards=2", "simulation.enabled=false", "workers=4", "reconcileInterval=1m")
    places = ("log.level=debug", "log.format=text", "watchNamespaces={a,b}")
    graces = ("shutdownGrace=2m", "hostFailureGrace=3m")
    images = ("images.allow={10.0.0.0/8,mirror.local}", "images.deny={10.9.0.0/16}")
    files = tuple(f"images.{name}Namespaces={{{name}}}" for name in ("claim", "shared", "file"))
    sizes = ("images.maxSize=1Gi", "images.maxDisk=1Ti")
    [container] = pod(render(*values, *places, *graces, *images, *files, *sizes))["containers"]
    operator.make_context("manager", list(container["args"]))
    flags = dict(flag.removeprefix("--").split("=") for flag in container["args"][1:])
    assert flags == {
        "image-allow": "10.0.0.0/8,mirror.local",
        "image-deny": "10.9.0.0/16",
        "image-max-size": "1Gi",
        "image-max-disk": "1Ti",
        "image-claim-namespaces": "claim",
        "image-shared-namespaces": "shared",
        "image-file-namespaces": "file",
        "scratch-directory": "/scratch",
        "metrics-bind-addr": ":8080",
        "health-probe-bind-addr": ":8081",
        "webhook-bind-addr": ":9443",
        "namespace": "novacron-system",
        "families": "novacron",
        "shards": "2",
        "workers": "4",
        "reconcile-interval": "1m",
        "shutdown-grace": "2m",
        "host-failure-grace": "3m",
        "log-level": "debug",
        "log-format": "text",
    }
    assert container["env"] == [{"name": "WATCH_NAMESPACE", "value": "a,b"}]


def test_authorities_of_ones_own_can_be_given_to_the_operator(render: Render) -> None:
    """As the guide of images has it: it reads them from a file that a variable names."""
    guide = (REPOSITORY / "docs/guide/images.md").read_text()
    [example] = [block for block in guide.split("```yaml\n") if block.startswith("extraEnv:")]
    values = yaml.safe_load(example.partition("```")[0])
    given = [f"{name}={json.dumps(value)}" for name, value in values.items()]
    spec = pod(render(*given, flag="--set-json"))
    [container] = spec["containers"]
    bare = pod(render())
    assert container["env"] == [*bare["containers"][0]["env"], *values["extraEnv"]]
    assert spec["volumes"] == [*bare["volumes"], *values["extraVolumes"]]
    mounts = bare["containers"][0]["volumeMounts"]
    assert container["volumeMounts"] == [*mounts, *values["extraVolumeMounts"]]
    [variable] = values["extraEnv"]
    [mount] = values["extraVolumeMounts"]
    assert variable["value"].startswith(f"{mount['mountPath']}/")


def test_where_pods_run_can_be_said(render: Render) -> None:
    """Of the operator and of the Job; only the operator is worth evicting others for."""
    values = ("nodeSelector.role=infra", "tolerations[0].operator=Exists")
    manifests = render(*values, "priorityClassName=system-cluster-critical")
    job = one(manifests, "Job")["spec"]["template"]["spec"]
    for spec in (pod(manifests), job):
        assert spec["nodeSelector"] == {"role": "infra"}
        assert spec["tolerations"] == [{"operator": "Exists"}]
    assert pod(manifests)["priorityClassName"] == "system-cluster-critical"


@pytest.mark.parametrize("namespace", ["novacron-system", "elsewhere"])
def test_it_can_live_in_any_namespace(helm: Helm, namespace: str) -> None:
    """Whatever names a namespace names the release's."""
    text = helm.template(namespace=namespace)
    assert f"--namespace={namespace}" in text
    assert ("novacron-system" in text) == (namespace == "novacron-system")


def test_the_values_of_the_viti_stacks_operator_do_what_they_say(render: Render) -> None:
    """Whoever comes from there keeps their values."""
    values = [
        "image.repository=mirror/novacron",
        "image.tag=v9",
        "image.pullPolicy=Always",
        "replicaCount=2",
        "resources.limits.cpu=1",
        "resources.limits.memory=1Gi",
        "resources.requests.cpu=200m",
        "resources.requests.memory=256Mi",
        "nodeSelector.disk=ssd",
        "tolerations[0].operator=Exists",
        "affinity.nodeAffinity.x=y",
        "families.viti=true",
    ]
    (deployment,) = [each for each in render(*values) if each["kind"] == "Deployment"]
    assert deployment["spec"]["replicas"] == 2
    pod = deployment["spec"]["template"]["spec"]
    container = pod["containers"][0]
    assert (container["image"], container["imagePullPolicy"]) == ("mirror/novacron:v9", "Always")
    assert container["resources"] == {
        "limits": {"cpu": 1, "memory": "1Gi"},
        "requests": {"cpu": "200m", "memory": "256Mi"},
    }
    assert "--families=novacron,viti" in container["args"]
    assert pod["nodeSelector"] == {"disk": "ssd"}
    assert pod["tolerations"] == [{"operator": "Exists"}]
    assert pod["affinity"] == {"nodeAffinity": {"x": "y"}}
