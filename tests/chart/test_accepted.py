"""What the chart renders to, before a real API server."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from chart.conftest import Render
from helm import CHART, Helm
from helm.plain import PLAIN, rendered
from novacron.localcluster.controlplane import ControlPlane

Object = dict[str, Any]

EVERYTHING = (
    "shards=3",
    "simulation.volume.hostPath.path=/srv/novacron",
    "watchNamespaces={default}",
    "priorityClassName=system-cluster-critical",
    "tolerations[0].operator=Exists",
    "nodeSelector.role=infra",
    "image.pullSecrets[0].name=key",
    "networkPolicy.metricsFrom[0].podSelector.matchLabels.app=prometheus",
    "podDisruptionBudget.maxUnavailable=50%",
)


@pytest.mark.parametrize("values", [(), EVERYTHING], ids=["defaults", "everything"])
def test_the_server_accepts_what_is_rendered(
    control_plane: ControlPlane, namespace: str, helm: Helm, values: tuple[str, ...]
) -> None:
    """Every field is known to it and valid: nothing is written, but all is checked."""
    flags = [flag for value in values for flag in ("--set", value)]
    text = helm.template(*flags, namespace=namespace)
    told = control_plane.kubectl(
        "apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-", input=text
    )
    assert len(told.splitlines()) == text.count("\nkind: ")


def test_pods_pass_the_strictest_pod_security(
    control_plane: ControlPlane, namespace: str, render: Render
) -> None:
    """Clusters that enforce the restricted standard run it as it is."""
    label = "pod-security.kubernetes.io/enforce=restricted"
    control_plane.kubectl("label", "namespace", namespace, label)
    control_plane.kubectl("create", "serviceaccount", "default", "--namespace", namespace)
    owners = [each for each in render() if each["kind"] in ("Deployment", "Job")]
    assert len(owners) == 2
    for owner in owners:
        pod = owner["spec"]["template"] | {"apiVersion": "v1", "kind": "Pod"}
        pod["metadata"] |= {"name": owner["metadata"]["name"], "namespace": namespace}
        pod["spec"]["serviceAccountName"] = "default"
        control_plane.kubectl("create", "--dry-run=server", "-f", "-", input=json.dumps(pod))


def test_plain_manifests_are_what_the_chart_renders_to(helm: Helm) -> None:
    """Whoever installs without helm gets the same; run make chart when this fails."""
    assert PLAIN.read_text() == rendered(helm)


def test_plain_manifests_install_on_a_new_cluster_and_stay_as_written(
    new_control_plane: Callable[..., ControlPlane],
) -> None:
    """In one command; and a second look finds nothing that the server understood differently."""
    plane = new_control_plane()
    files = ("-f", str(CHART / "crds"), "-f", str(PLAIN))
    plane.kubectl("apply", "--server-side", *files)
    # kubectl diff ends with code 1 when there is a difference, which raises.
    assert plane.kubectl("diff", "--server-side", *files) == ""
    kinds = {each["kind"] for each in yaml.safe_load_all(PLAIN.read_text())}
    assert {"Namespace", "Deployment", "ClusterRole", "NetworkPolicy"} <= kinds
    assert "Job" not in kinds
