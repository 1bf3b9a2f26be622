"""The VirtualMachines that were reviewed, asked of the real virt-api: it takes every one."""

from pathlib import Path

import pytest
import yaml

from kubevirt_bed import KubeVirtBed

pytestmark = pytest.mark.full

GOLDEN = sorted((Path(__file__).parents[2] / "golden/kubevirt").glob("*.vm.yaml"))


def test_every_mapping_is_one_that_kubevirt_takes(kubevirt: KubeVirtBed) -> None:
    """Nothing is made: only the API and its webhooks are asked."""
    assert GOLDEN
    for file in GOLDEN:
        body = yaml.safe_load(file.read_text())
        body["metadata"] = {"name": body["metadata"]["name"], "namespace": kubevirt.namespace}
        kubevirt.api.call("POST", f"{kubevirt.path('virtualmachines')}?dryRun=All", body)
